/** Values that the passages found have in their metadata, with how many passages have each; choosing one narrows the search. */

import { useEffect, useRef, useState } from "preact/hooks";

import type { Engram, Schemas } from "../service";
import type { Filter } from "./address";

/** Fields that are counted, and values of each that are shown. */
const FIELDS = 4;
const VALUES = 8;
/** What the results say by themselves. */
const OF_RESULTS = new Set(["source", "heading", "page", "title", "link", "url", "id", "quoted", "valid_from", "valid_until", "supersedes"]);

interface Facet {
  field: string;
  groups: Schemas["PassageGroupOut"][];
}

interface Props {
  engram: Engram;
  answer: Schemas["QueryOut"] | null;
  filter: Filter;
  onChoose: (filter: Filter) => void;
}

export function Facets({ engram, answer, filter, onChoose }: Props) {
  const [facets, setFacets] = useState<Facet[]>([]);
  const [fields, setFields] = useState<string[]>([]);
  const latest = useRef(0);
  useEffect(() => setFields([]), [engram]);
  useEffect(() => {
    const found = answer?.passages.flatMap(({ metadata }) => Object.keys(metadata).filter((name) => isShown(name, metadata[name]))) ?? [];
    if (found.length > 0) setFields([...new Set(found)].slice(0, FIELDS));
  }, [answer]);
  const counted = [...new Set([...Object.keys(filter), ...fields])].sort();
  useEffect(() => {
    const turn = ++latest.current;
    const count = async (field: string): Promise<Facet> => {
      const { [field]: _, ...others } = filter;
      const counts = await engram.countPassages({ by: field, limit: VALUES, filter: others });
      // Values that no two passages share tell nothing that the results do not.
      return { field, groups: field in filter || counts.groups.some(({ passages }) => passages > 1) ? counts.groups : [] };
    };
    // Without counts the page searches all the same.
    void Promise.all(counted.map(count)).catch(() => []).then((found) => turn === latest.current && setFacets(found));
  }, [engram, counted.join("\n"), JSON.stringify(filter)]);
  const choose = (field: string, value: unknown) => {
    const { [field]: chosen, ...others } = filter;
    onChoose(isSame(chosen, value) ? others : { ...others, [field]: value });
  };
  return (
    <>
      {facets.map(({ field, groups }) => {
        const chosen = filter[field];
        const values = groups.map(({ value }) => value);
        const isCounted = chosen === undefined || values.some((value) => isSame(value, chosen));
        if (groups.length + Number(!isCounted) < (chosen === undefined ? 2 : 1)) return null;
        return (
          <fieldset key={field}>
            <legend class="quiet">{field}</legend>
            <div class="values">
              {!isCounted && <Value label={say(chosen)} isChosen onChoose={() => choose(field, chosen)} />}
              {groups.map(({ value, passages }) => (
                <Value
                  key={JSON.stringify(value)}
                  label={`${say(value)} (${passages})`}
                  isChosen={isSame(value, chosen)}
                  onChoose={() => choose(field, value)}
                />
              ))}
            </div>
          </fieldset>
        );
      })}
    </>
  );
}

function Value({ label, isChosen, onChoose }: { label: string; isChosen: boolean; onChoose: () => void }) {
  return (
    <button type="button" aria-pressed={isChosen} onClick={onChoose}>
      {label}
    </button>
  );
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);
const say = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function isShown(name: string, value: unknown): boolean {
  const one: unknown = Array.isArray(value) ? value[0] : value;
  return !OF_RESULTS.has(name) && ["string", "number", "boolean"].includes(typeof one);
}
