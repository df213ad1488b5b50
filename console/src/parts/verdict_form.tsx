/** The form of a verdict on sentences: which helped, which did not, and what is missing. */

import { useState } from "preact/hooks";

import { read, type Schemas } from "../service";
import { useShared } from "../state";
import { type AnswerState, compareRanks, type Mark, type MissingSentence } from "./answer_state";
import { counted, Panel, Problem } from "./basic";

interface Props {
  state: AnswerState;
  change: (part: Partial<AnswerState>) => void;
}

export function VerdictForm({ state, change }: Props) {
  const shared = useShared();
  const { engram, may } = shared;
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const marked = (type: Mark) => [...state.marks].filter(([, mark]) => mark === type).map(([id]) => id);
  const [supporting, rejected] = [marked("supporting"), marked("rejected")];
  const nothing = supporting.length + rejected.length + state.missing.length === 0;

  const judge = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const before = await compareRanks(shared, state);
      const verdict = await engram.feedback(state.answer.query_id, {
        supporting: supporting.map((sentence_id) => ({ sentence_id })),
        rejected: rejected.map((sentence_id) => ({ sentence_id })),
        missed: state.missing.map(({ sentence_id }) => ({ sentence_id })),
        complete: state.isComplete,
        wait: true,
      });
      const after = await compareRanks(shared, state);
      const summary = inWords(supporting.length, rejected.length, state.missing.length);
      change({
        effect: { verdict, summary, before, after, isRevoked: false, missing: state.missing },
        marks: new Map(),
        missing: [],
        isComplete: false,
      });
      requestAnimationFrame(() => document.getElementById("changed")?.focus());
    } catch (failed) {
      setError(failed);
    } finally {
      setBusy(false);
    }
  };

  return (
    <Panel title="Your verdict on sentences">
      <div class="stack close">
        <p class={nothing ? "quiet" : ""} aria-live="polite">
          {nothing ? "Mark sentences with the signs beside them, then press Judge. Thumbs are stored at once." : `${inWords(supporting.length, rejected.length, state.missing.length)}.`}
        </p>
        {state.missing.length > 0 && (
          <ul class="stack close">
            {state.missing.map((one) => (
              <li key={one.sentence_id} class="picked">
                <span>
                  <strong>{one.title}</strong> {one.text}
                </span>
                <button
                  type="button"
                  class="plain"
                  aria-label={`Leave out: ${one.text}`}
                  onClick={() => change({ missing: state.missing.filter((other) => other !== one) })}
                >
                  Leave out
                </button>
              </li>
            ))}
          </ul>
        )}
        {may("read") && shared.has("experiments") && <EvidenceSearch state={state} onPick={(one) => change({ missing: [...state.missing, one] })} />}
        <label class="check">
          <input type="checkbox" checked={state.isComplete} onChange={(event) => change({ isComplete: event.currentTarget.checked })} />
          <span>
            That is all the evidence
            <span class="quiet"> – highlighted sentences that I did not mark count as no help</span>
          </span>
        </label>
        <Problem error={error} again={() => void judge()} />
        <button type="button" class="main" disabled={nothing || busy} onClick={() => void judge()}>
          {busy ? "Learning …" : "Judge"}
        </button>
      </div>
    </Panel>
  );
}

function inWords(supporting: number, rejected: number, missing: number): string {
  return [
    supporting && `${counted(supporting, "sentence")} helped`,
    rejected && `${counted(rejected, "sentence")} did not`,
    missing && `${counted(missing, "sentence")} missing`,
  ]
    .filter(Boolean)
    .join(", ");
}

/** A search for evidence that the answer lacks, where two arms can be compared: that stores no query. */
function EvidenceSearch({ state, onPick }: { state: AnswerState; onPick: (one: MissingSentence) => void }) {
  const { engram, collection } = useShared();
  const [words, setWords] = useState("");
  const [found, setFound] = useState<Schemas["PassageOut"][] | null>(null);
  const [error, setError] = useState<unknown>();
  const look = async (event: Event) => {
    event.preventDefault();
    if (words.trim() === "") return;
    setError(undefined);
    try {
      const compared = await read<Schemas["CompareOut"]>(
        engram.api.POST("/query/compare", {
          body: { collection, query: words, a: { strategy: "lexical", memory: "off" }, b: { strategy: "dense", memory: "off" }, top_k: 4 },
        }),
      );
      setFound(await Promise.all(compared.passages.slice(0, 6).map((passage) => engram.passage(passage.passage_id))));
    } catch (failed) {
      setError(failed);
    }
  };
  const taken = new Set([...state.missing.map((one) => one.sentence_id), ...state.marks.keys()]);
  return (
    <details class="missing">
      <summary>Evidence is missing</summary>
      <form class="question" onSubmit={(event) => void look(event)}>
        <input
          type="search"
          aria-label="Search for missing evidence"
          placeholder="Words of the passage"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
        <button>Search</button>
      </form>
      <Problem error={error} />
      {found?.length === 0 && <p class="quiet">Nothing was found.</p>}
      {found && found.length > 0 && <div class="found-list" tabIndex={0} role="region" aria-label="What was found">{found.map((passage) => (
        <div key={passage.id} class="found">
          <h3>{passage.title ?? passage.id}</h3>
          {passage.sentences.map((one) => (
            <button
              key={one.sentence_id}
              type="button"
              class="pick"
              disabled={taken.has(one.sentence_id)}
              onClick={() => onPick({ sentence_id: one.sentence_id, text: one.text, title: passage.title ?? passage.id })}
            >
              {one.text}
            </button>
          ))}
        </div>
      ))}</div>}
    </details>
  );
}
