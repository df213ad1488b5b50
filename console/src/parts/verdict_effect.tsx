/** The effect of a verdict: ranks before and after it, side by side, and the memories that it moved. */

import { useState } from "preact/hooks";

import type { Schemas } from "../service";
import { address, useShared } from "../state";
import { type AnswerState, compareRanks, type MissingSentence, type VerdictEffect } from "./answer_state";
import { counted, figure, Panel, Problem } from "./basic";
import { moved, type Movement, Slopes } from "./slopes";

interface Props {
  state: AnswerState;
  effect: VerdictEffect;
  change: (part: Partial<AnswerState>) => void;
}

export function EffectView({ state, effect, change }: Props) {
  const shared = useShared();
  const [error, setError] = useState<unknown>();
  const { verdict } = effect;
  const takeBack = async () => {
    setError(undefined);
    try {
      await shared.engram.revoke(verdict.feedback_id);
      const after = await compareRanks(shared, state);
      change({ effect: { ...effect, before: effect.after, after, isRevoked: true } });
    } catch (failed) {
      setError(failed);
    }
  };
  const all = movements(effect);
  const many = all.filter(moved).length;
  return (
    <Panel
      id="changed"
      title="What changed"
      note={
        <>
          {effect.isRevoked ? "Without verdict " : "By verdict "}
          <strong>{verdict.feedback_id}</strong> of {verdict.judge}: {effect.summary}
        </>
      }
    >
      <div class="stack" aria-live="polite">
        {verdict.status === "applied" && effect.after === null ? (
          <p>The verdict is applied.</p>
        ) : verdict.status === "applied" ? (
          <p>
            {many === 0 ? "No rank among the first ten changed." : `${counted(many, "passage")} of the first ten moved.`}
          </p>
        ) : (
          <p class="note">The verdict is {verdict.status}{verdict.error ? `: ${verdict.error}` : "; a worker applies it."}</p>
        )}
        <div class="half">
          {effect.after !== null && <Slopes movements={all} />}
          {!effect.isRevoked && verdict.changes && verdict.changes.length > 0 && <Moves changes={verdict.changes} state={state} missing={effect.missing} />}
        </div>
        <Problem error={error} again={() => void takeBack()} />
        <div class="row">
          <a class="button" href={address("learned", "", { c: state.collection })}>
            What it learned
          </a>
          {!effect.isRevoked && (
            <button type="button" class="danger" onClick={() => void takeBack()}>
              Take it back
            </button>
          )}
        </div>
      </div>
    </Panel>
  );
}

function movements({ before, after }: VerdictEffect): Movement[] {
  const all = new Map<string, Movement>();
  for (const one of before?.passages ?? []) {
    all.set(one.passage_id, { id: one.passage_id, title: one.title ?? one.passage_id, before: one.rank_b, after: null });
  }
  for (const one of after?.passages ?? []) {
    const known = all.get(one.passage_id);
    if (known) known.after = one.rank_b;
    else all.set(one.passage_id, { id: one.passage_id, title: one.title ?? one.passage_id, before: null, after: one.rank_b });
  }
  return [...all.values()];
}

export const CHANNELS: Record<string, string> = { task: "memory", time: "memory of times", recall: "support for this question" };

function Moves({ changes, state, missing }: { changes: readonly Schemas["ChangeOut"][]; state: AnswerState; missing: readonly MissingSentence[] }) {
  const texts = new Map(
    [...state.answer.passages.flatMap((passage) => passage.sentences), ...missing].map((one) => [one.sentence_id, one.text]),
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
