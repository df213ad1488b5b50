/** What a verdict changed: ranks before and after it, side by side, and the memories that it moved. */

import { useState } from "preact/hooks";

import { read, type Schemas } from "../service";
import { address, useShared } from "../state";
import { type Asked, type Changed, deep, type Missing } from "./asking";
import { counted, figure, Panel, Problem } from "./basic";
import { moved, type Movement, Slopes } from "./slopes";

interface Props {
  asked: Asked;
  changed: Changed;
  change: (part: Partial<Asked>) => void;
}

export function ChangedView({ asked, changed, change }: Props) {
  const { engram } = useShared();
  const [error, setError] = useState<unknown>();
  const { verdict } = changed;
  const takeBack = async () => {
    try {
      await engram.revoke(verdict.feedback_id);
      const after = await read<Schemas["CompareOut"]>(engram.api.POST("/query/compare", { body: deep(asked) }));
      change({ changed: { ...changed, before: changed.after, after, takenBack: true } });
    } catch (failed) {
      setError(failed);
    }
  };
  const all = movements(changed);
  const many = all.filter(moved).length;
  return (
    <Panel
      id="changed"
      title="What changed"
      note={
        <>
          {changed.takenBack ? "Without verdict " : "By verdict "}
          <strong>{verdict.feedback_id}</strong> of {verdict.judge}: {changed.said}
        </>
      }
    >
      <div class="stack" aria-live="polite">
        {verdict.status === "applied" ? (
          <p>
            {many === 0 ? "No rank among the first ten changed." : `${counted(many, "passage")} of the first ten moved.`}
          </p>
        ) : (
          <p class="note">The verdict is {verdict.status}{verdict.error ? `: ${verdict.error}` : "; a worker applies it."}</p>
        )}
        <div class="half">
          <Slopes movements={all} />
          {!changed.takenBack && verdict.changes && verdict.changes.length > 0 && <Moves changes={verdict.changes} asked={asked} missing={changed.missing} />}
        </div>
        <Problem error={error} />
        <div class="row">
          <a class="button" href={address("learned", "", { c: asked.collection })}>
            What it learned
          </a>
          {!changed.takenBack && (
            <button type="button" class="danger" onClick={() => void takeBack()}>
              Take it back
            </button>
          )}
        </div>
      </div>
    </Panel>
  );
}

function movements({ before, after }: Changed): Movement[] {
  const all = new Map<string, Movement>();
  for (const one of before.passages) {
    all.set(one.passage_id, { id: one.passage_id, title: one.title ?? one.passage_id, before: one.rank_b, after: null });
  }
  for (const one of after.passages) {
    const known = all.get(one.passage_id);
    if (known) known.after = one.rank_b;
    else all.set(one.passage_id, { id: one.passage_id, title: one.title ?? one.passage_id, before: null, after: one.rank_b });
  }
  return [...all.values()];
}

export const CHANNELS: Record<string, string> = { task: "memory", time: "memory of times", recall: "support for this question" };

function Moves({ changes, asked, missing }: { changes: readonly Schemas["ChangeOut"][]; asked: Asked; missing: readonly Missing[] }) {
  const texts = new Map(
    [...(asked.answer?.passages.flatMap((passage) => passage.sentences) ?? []), ...missing].map((one) => [one.sentence_id, one.text]),
  );
  const sentences = [...new Set(changes.map((one) => one.sentence_id))];
  return (
    <details open={sentences.length <= 4}>
      <summary>
        {counted(sentences.length, "sentence")} moved, {counted(changes.length, "state")}
      </summary>
      <ul class="moves">
        {sentences.slice(0, 40).map((sentence) => (
          <li key={sentence}>
            <p>{texts.get(sentence) ?? `Sentence ${sentence}`}</p>
            {changes
              .filter((one) => one.sentence_id === sentence)
              .map((one) => (
                <p key={one.channel} class="quiet figure">
                  <span class={`badge ${one.target ? "good" : "bad"}`}>{one.target ? "helped" : "did not"}</span>{" "}
                  {CHANNELS[one.channel] ?? one.channel}: perplexity {figure(one.perplexity_before)} → {figure(one.perplexity_after)}, gain{" "}
                  {figure(one.gain)}
                  {one.capped && " (held back by a cap)"}
                </p>
              ))}
          </li>
        ))}
      </ul>
    </details>
  );
}
