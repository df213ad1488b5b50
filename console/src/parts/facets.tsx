/** Values of a metadata field with how many passages have each. Choosing one narrows the filter. */

import { useState } from "preact/hooks";

import type { Schemas } from "../service";
import { useShared } from "../state";
import { Problem } from "./basic";
import { parseFilter } from "./question";

interface Counted {
  field: string;
  counts: Schemas["PassageCountOut"];
}

export function Facets({ filter, onChoose }: { filter: string; onChoose: (filter: string) => void }) {
  const { engram, collection } = useShared();
  const [field, setField] = useState("");
  const [counted, setCounted] = useState<Counted | null>(null);
  const [error, setError] = useState<unknown>(null);
  const by = field.trim();
  const count = async () => {
    setError(null);
    try {
      const counts = await engram.countPassages({ by, filter: parseFilter(filter) }, collection);
      setCounted({ field: by, counts });
    } catch (failure) {
      setCounted(null);
      setError(failure);
    }
  };
  const choose = (chosen: string, value: unknown) => {
    setCounted(null);
    onChoose(JSON.stringify({ ...parseFilter(filter), [chosen]: value }));
  };
  return (
    <div class="stack facets">
      <div class="row">
        <label class="field">
          <span>Values of a metadata field</span>
          <input
            type="text"
            class="code"
            spellcheck={false}
            autocomplete="off"
            placeholder="topic"
            maxLength={200}
            value={field}
            onInput={(event) => setField(event.currentTarget.value)}
          />
        </label>
        <button type="button" disabled={by === ""} onClick={() => void count()}>
          Count passages
        </button>
      </div>
      {error !== null && <Problem error={error} again={() => void count()} />}
      {counted !== null && (
        <div class="row" role="group" aria-label={`Passages by ${counted.field}`}>
          {counted.counts.groups.map(({ value, passages }) => (
            <button key={JSON.stringify(value)} type="button" onClick={() => choose(counted.field, value)}>
              {typeof value === "string" ? value : JSON.stringify(value)} ({passages})
            </button>
          ))}
          <span class="quiet">
            {counted.counts.without} of {counted.counts.passages} without it{counted.counts.more ? "; there are more values" : ""}
          </span>
        </div>
      )}
    </div>
  );
}
