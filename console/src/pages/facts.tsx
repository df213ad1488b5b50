/** The page of facts: the neighbourhood of an entity, at any time, and conflicts. */

import Graph from "graphology";
import { useEffect, useMemo, useState } from "preact/hooks";

import { Bar, counted, Empty, figure, Head, Panel, Problem, Waiting } from "../parts/basic";
import { during, FactDialog } from "../parts/fact";
import { GraphView } from "../parts/graph";
import { conflicts, type Fact, fill, holdsIn, node, objectNode, reach, settle } from "../parts/neighbourhood";
import { read, type Schemas } from "../service";
import { address, useLoaded, usePlace, useShared } from "../state";

const MOST = 1_000;
/** Facts that the list has. */
const LISTED = 300;
const AT_ONCE = 6;
/** Entities whose neighbours one click loads. */
const MOST_AT_ONCE = 300;

export function Facts() {
  const { engram, collection, may } = useShared();
  const { settings } = usePlace();
  const searched = settings.get("q") ?? "";
  const [words, setWords] = useState(searched);
  const [facts, setFacts] = useState<ReadonlyMap<number, Fact>>(new Map());
  const [starts, setStarts] = useState<readonly Schemas["EntityRef"][] | null>(null);
  const [centre, setCentre] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<{ error: unknown; again: () => void } | null>(null);
  const predicates = useLoaded(async () => {
    if (!may("read")) return new Set<string>();
    const found = await read<Schemas["PredicatesOut"]>(engram.api.GET("/predicates", { params: { query: { collection } } }));
    return new Set(found.predicates.filter((one) => one.functional).map((one) => one.predicate));
  }, [collection]);

  const add = (more: readonly Fact[], anew = false) =>
    setFacts((before) => new Map([...(anew ? [] : before), ...more.map((fact) => [fact.fact_id, fact] as const)]));
  const around = async (entity: number, anew = false) => {
    if (!may("read")) return;
    const params = { path: { entity_id: entity }, query: { collection, limit: MOST } };
    const found = await read<Schemas["FactEntityOut"]>(engram.api.GET("/entities/{entity_id}", { params }));
    add(found.facts, anew);
    setCentre(node(found.stands_for?.entity_id ?? found.entity_id));
  };
  /** The neighbours of every entity that is shown, some at a time. */
  const aroundAll = async () => {
    const entities = new Set([...facts.values()].flatMap((fact) => [fact.subject.entity_id, fact.object_entity_id ?? 0]));
    entities.delete(0);
    const left = [...entities].slice(0, MOST_AT_ONCE);
    const found: Fact[] = [];
    while (left.length > 0) {
      const some = left.splice(0, AT_ONCE);
      const pages = await Promise.all(
        some.map((entity) => {
          const params = { path: { entity_id: entity }, query: { collection, limit: MOST } };
          return read<Schemas["FactEntityOut"]>(engram.api.GET("/entities/{entity_id}", { params }));
        }),
      );
      found.push(...pages.flatMap((page) => page.facts));
    }
    add(found);
    setCentre(null);
  };
  const attempt = async (request: () => Promise<void>) => {
    setBusy(true);
    setFailure(null);
    try {
      await request();
    } catch (error) {
      setFailure({ error, again: () => void attempt(request) });
    } finally {
      setBusy(false);
    }
  };
  const search = (query: string) =>
    attempt(async () => {
      setFacts(new Map());
      setStarts(null);
      const body = { collection, query, include_closed: true, top_k: 20 };
      const found = await read<Schemas["FactSearchOut"]>(engram.api.POST("/facts/search", { body }));
      setStarts(found.starts);
      add(found.facts, true);
      const first = found.starts[0];
      if (first) await around(first.entity_id);
    });
  useEffect(() => {
    if (searched === "") return;
    setWords(searched);
    void search(searched);
  }, [searched]);
  /** Search by the address, so that the neighbourhood can be linked to. */
  const submit = (event: Event) => {
    event.preventDefault();
    const target = address("facts", "", { c: collection, q: words.trim() });
    if (location.hash === target) void search(words.trim());
    else location.hash = target;
  };

  return (
    <>
      <Head title="Facts">What is stated about a name, by which source, and how far it is believed.</Head>
      <div class="stack">
        <form class="panel stack" role="search" onSubmit={submit}>
          <div class="question">
            <input type="text" aria-label="Name or question" placeholder="A name, or a question" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
            <button class="main" disabled={words.trim() === "" || busy}>
              Look
            </button>
          </div>
          {starts && starts.length > 1 && (
            <div class="row">
              <span class="label">Found</span>
              {starts.slice(0, 12).map((one) => (
                <button key={one.entity_id} type="button" class="small" onClick={() => void attempt(() => around(one.entity_id, true))}>
                  {one.name}
                </button>
              ))}
            </div>
          )}
          {busy && <Waiting what="Looking" />}
        </form>
        {failure && <Problem error={failure.error} again={failure.again} />}
        {facts.size === 0 ? (
          failure === null && !busy && (
            <Empty title={starts === null ? "No name yet" : "No facts about that"}>
              {starts === null ? "Facts come from sources that state them." : "Another name may have some."}
            </Empty>
          )
        ) : (
          <Around facts={[...facts.values()]} functional={predicates.data ?? new Set()} centre={centre} expand={(entity) => void attempt(() => around(entity))} expandAll={() => void attempt(aroundAll)} />
        )}
      </div>
    </>
  );
}

interface AroundProps {
  facts: readonly Fact[];
  functional: ReadonlySet<string>;
  centre: string | null;
  expand: (entity: number) => void;
  expandAll: () => void;
}

function Around({ facts, functional, centre, expand, expandAll }: AroundProps) {
  const [year, setYear] = useState<number | null>(null);
  const [disputedOnly, setDisputedOnly] = useState(false);
  const [selected, setSelected] = useState<string | null>(centre);
  const [open, setOpen] = useState<number | null>(null);
  const [settled, setSettled] = useState(false);
  const graph = useMemo(() => new Graph({ multi: true }), []);
  const disputed = useMemo(() => conflicts(facts, functional), [facts, functional]);
  const span = useMemo(() => reach(facts), [facts]);
  const shown = useMemo(
    () => facts.filter((fact) => (year === null || holdsIn(fact, year)) && (!disputedOnly || fact.doubted || disputed.has(fact.fact_id))),
    [facts, year, disputedOnly, disputed],
  );
  useEffect(() => setSelected(centre), [centre]);
  useEffect(() => {
    fill(graph, shown, disputed);
    setSettled(false);
    return settle(graph, () => setSettled(true));
  }, [shown, disputed]);
  const touching = (fact: Fact) => selected === null || node(fact.subject.entity_id) === selected || objectNode(fact) === selected;
  const listed = shown.filter(touching).sort((one, other) => other.belief - one.belief);
  const entity = selected?.startsWith("entity ") ? Number(selected.slice("entity ".length)) : null;
  return (
    <div class="two">
      <Panel title="Neighbourhood" note={`${counted(shown.length, "fact")}; red is doubted or in conflict`}>
        <GraphView
          graph={graph}
          label={`Graph of ${counted(shown.length, "fact")}; the list beside it says the same.`}
          height={520}
          settled={settled}
          selected={selected !== null && graph.hasNode(selected) ? selected : null}
          onSelect={setSelected}
        />
        <div class="row grow">
          {span && (
            <>
              <label class="check">
                <input type="checkbox" checked={year !== null} onChange={(event) => setYear(event.currentTarget.checked ? span[1] : null)} />
                <span>At a time</span>
              </label>
              <input
                type="range"
                min={span[0]}
                max={span[1]}
                value={year ?? span[1]}
                disabled={year === null}
                aria-label="Year"
                onInput={(event) => setYear(Number(event.currentTarget.value))}
              />
              <strong class="figure">{year ?? `${span[0]} to ${span[1]}`}</strong>
            </>
          )}
          <button type="button" class="small" onClick={expandAll}>
            Show neighbours of all
          </button>
          <label class="check">
            <input type="checkbox" checked={disputedOnly} onChange={(event) => setDisputedOnly(event.currentTarget.checked)} />
            <span>Conflicts and doubts only</span>
          </label>
        </div>
      </Panel>
      <Panel
        title={selected !== null && graph.hasNode(selected) ? String(graph.getNodeAttribute(selected, "label")) : "All facts"}
        note={counted(listed.length, "fact")}
      >
        <div class="stack close">
          <div class="row">
            {entity !== null && (
              <button type="button" class="small" onClick={() => expand(entity)}>
                Show its neighbours
              </button>
            )}
            {selected !== null && (
              <button type="button" class="small" onClick={() => setSelected(null)}>
                Show all
              </button>
            )}
          </div>
          <ul class="factlist" tabIndex={0} aria-label="Facts">
            {listed.slice(0, LISTED).map((fact) => (
              <li key={fact.fact_id}>
                <button type="button" class="plain text" onClick={() => setOpen(fact.fact_id)}>
                  {fact.subject.name} <em>{fact.predicate}</em> {fact.object}
                </button>
                <span class="row">
                  <span class="measure">
                    <Bar value={fact.belief} tone={fact.doubted ? "bad" : "good"} /> <span class="figure">{figure(fact.belief)}</span>
                  </span>
                  <span class="quiet">{during(fact)}</span>
                  {fact.doubted && <span class="badge bad">doubted</span>}
                  {disputed.has(fact.fact_id) && <span class="badge warm">in conflict</span>}
                  {fact.closed_at && <span class="badge">closed</span>}
                </span>
              </li>
            ))}
          </ul>
          {listed.length > LISTED && <p class="quiet">The surest {LISTED} are listed.</p>}
        </div>
      </Panel>
      {open !== null && (
        <FactDialog
          id={open}
          onClose={() => setOpen(null)}
          onSaid={() => entity !== null && expand(entity)}
        />
      )}
    </div>
  );
}
