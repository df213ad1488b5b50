/** What a verdict changed: ranks before and after it, side by side, and the memories that it moved. */

import { useState } from "preact/hooks";

import { read, type Schemas } from "../service";
import { address, useShared } from "../state";
import { type Asked, type Changed, deep, DEEP } from "./asking";
import { counted, figure, Panel, Problem } from "./basic";

const ROWS = 10;
const HEIGHT = 30;

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
  const moved = movements(changed).filter((one) => one.before !== one.after && Math.min(one.before ?? DEEP, one.after ?? DEEP) <= ROWS);
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
            {moved.length === 0 ? "No rank among the first ten changed." : `${counted(moved.length, "passage")} of the first ten moved.`}
          </p>
        ) : (
          <p class="note">The verdict is {verdict.status}{verdict.error ? `: ${verdict.error}` : "; a worker applies it."}</p>
        )}
        <div class="half">
          <Slopes changed={changed} />
          {!changed.takenBack && verdict.changes && verdict.changes.length > 0 && <Moves changes={verdict.changes} asked={asked} />}
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

interface Movement {
  id: string;
  title: string;
  before: number | null;
  after: number | null;
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

/** The first of both lists, with a line for each passage from where it was to where it is. */
function Slopes({ changed }: { changed: Changed }) {
  const all = movements(changed);
  const side = (by: "before" | "after") =>
    all.filter((one) => (one[by] ?? DEEP + 1) <= ROWS).sort((one, other) => (one[by] ?? 0) - (other[by] ?? 0));
  const [left, right] = [side("before"), side("after")];
  const rows = Math.max(left.length, right.length, 1);
  const height = rows * HEIGHT;
  const place = (rank: number | null) => (rank === null || rank > ROWS ? height + 6 : (rank - 0.5) * HEIGHT);
  const drawn = all.filter((one) => Math.min(one.before ?? DEEP, one.after ?? DEEP) <= ROWS);
  return (
    <div class="slopes">
      <h3>Before</h3>
      <span />
      <h3>After</h3>
      <ol>
        {left.map((one) => (
          <li key={one.id} title={one.title}>
            <span class="figure">{one.before}</span> <span>{one.title}</span>
          </li>
        ))}
      </ol>
      <svg viewBox={`0 0 60 ${height}`} height={height} preserveAspectRatio="none" aria-hidden="true">
        {drawn.map((one) => {
          const [from, to] = [place(one.before), place(one.after)];
          const tone = to < from ? "rises" : to > from ? "falls" : "stays";
          return <path key={one.id} class={tone} d={`M0 ${from}C30 ${from} 30 ${to} 60 ${to}`} />;
        })}
      </svg>
      <ol>
        {right.map((one) => {
          const rises = (one.before ?? DEEP + 1) > (one.after ?? 0);
          return (
            <li key={one.id} title={one.title}>
              <span class="figure">{one.after}</span> <span>{one.title}</span>
              {one.before !== one.after && (
                <small class={rises ? "rises" : "falls"}>
                  {rises ? "▲" : "▼"} {one.before === null ? "not ranked before" : `was ${one.before}`}
                </small>
              )}
            </li>
          );
        })}
      </ol>
    </div>
  );
}

const CHANNELS: Record<string, string> = { task: "memory", time: "memory of times", recall: "support for this question" };

function Moves({ changes, asked }: { changes: readonly Schemas["ChangeOut"][]; asked: Asked }) {
  const texts = new Map(
    asked.answer?.passages.flatMap((passage) => passage.sentences.map((one) => [one.sentence_id, one.text] as const)) ?? [],
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
