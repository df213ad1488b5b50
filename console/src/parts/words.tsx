/** The answer in words, and the sentences that it rests on, each with the way to where it stands in the order. */

import type { Schemas } from "../service";
import type { Words } from "./answer_state";
import { Panel } from "./basic";

/** Where a sentence stands on the page. */
export const place = (sentence: number): string => `sentence-${sentence}`;

/** The sentences cited, each with its number. */
export const numbers = (words: Words | null): ReadonlyMap<number, number> => new Map(words?.citations.map((one, at) => [one.sentence_id, at + 1]));

export function WordsPanel({ words, passages }: { words: Words; passages: readonly Schemas["PassageHit"][] }) {
  const { answer, citations, warnings } = words;
  const titles = new Map(passages.map((one) => [one.passage_id, one.title ?? one.passage_id]));
  const go = (sentence: number) => {
    const found = document.getElementById(place(sentence));
    found?.scrollIntoView({ block: "center" });
    found?.focus({ preventScroll: true });
  };
  return (
    <Panel title="In words" note={words.sufficient ? "the model found the evidence sufficient" : answer && "the model did not find the evidence sufficient"}>
      <div class="stack close" aria-live="polite">
        {answer ? <p class="lead">{answer}</p> : <p>The evidence gives no answer.</p>}
        {warnings?.map((warning) => (
          <p key={warning.type} class="note">
            {warning.detail}
          </p>
        ))}
        {citations.length > 0 && (
          <ol class="sources" aria-label="Sources">
            {citations.map((one, at) => (
              <li key={one.sentence_id}>
                <span class="figure">{at + 1}</span>
                <span>
                  <button type="button" class="plain text" onClick={() => go(one.sentence_id)}>
                    {one.text}
                  </button>
                  <span class="quiet">{titles.get(one.passage_id) ?? one.passage_id}</span>
                </span>
              </li>
            ))}
          </ol>
        )}
      </div>
    </Panel>
  );
}
