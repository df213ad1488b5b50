/** Scores taken apart: a bar for each factor, and what verdicts did to it. */

import type { Schemas } from "../service";
import { address } from "../state";
import { Bar, counted, figure, moment, signed } from "./basic";
import { factorLabel } from "./factor_labels";
import { Table } from "./table";
import { Term } from "./term";

interface Factor {
  feature: string;
  value: number;
  weight: number | null;
  adds: number;
}

/** Factors in sight; the smaller ones can be unfolded, since a page of twenty says less. */
const SHOWN = 6;

/** What each feature adds; the features' sum, and what recall adds, is the score. */
export function Factors({ features, recall = 0 }: { features: Record<string, Schemas["FeatureTraceOut"]>; recall?: number }) {
  const rows: Factor[] = Object.entries(features).map(([feature, { value, weight }]) => ({ feature, value, weight, adds: value * weight }));
  if (recall !== 0) rows.push({ feature: "recall", value: recall, weight: null, adds: recall });
  rows.sort((one, other) => Math.abs(other.adds) - Math.abs(one.adds));
  const most = Math.max(...rows.map((one) => Math.abs(one.adds)), 1e-9);
  const least = rows.some((one) => one.adds < 0) ? -most : 0;
  const smaller = rows.splice(SHOWN);
  const table = (shown: readonly Factor[]) => (
    <Table
      class="factors"
      rows={shown}
      by={(one) => one.feature}
      columns={[
        { title: "Factor", heads: true, cell: ({ feature }) => <FactorName feature={feature} /> },
        {
          title: "Length",
          quiet: true,
          class: "length",
          cell: (one) => <Bar value={one.adds} least={least} most={most} tone={one.feature === "recall" ? "warm" : undefined} />,
        },
        { title: "Adds", class: "number", cell: (one) => signed(one.adds) },
        {
          title: "Value × weight",
          class: "number quiet",
          cell: (one) => (one.weight === null ? "" : `${figure(one.value)} × ${figure(one.weight)}`),
        },
      ]}
    />
  );
  return (
    <>
      {table(rows)}
      {smaller.length > 0 && (
        <details>
          <summary>{counted(smaller.length, "smaller factor")}</summary>
          {table(smaller)}
        </details>
      )}
    </>
  );
}

function FactorName({ feature }: { feature: string }) {
  const { name, meaning } = factorLabel(feature);
  return (
    <span title={feature}>
      {name} <small>{meaning}</small>
    </span>
  );
}

const PARTS = [
  ["activation", "Activation", "activation"],
  ["semantic", "Meaning", "meaning"],
  ["task_factor", "Memory", "taskFactor"],
  ["time_factor", "Time", "timeFactor"],
] as const;

/** A selected sentence: activation × meaning × memory × time, shared out among what its hop reached. */
export function SentenceFactors({ hop, sentence }: { hop: number; sentence: Schemas["SentenceTraceOut"] }) {
  return (
    <div class="sentence">
      <p>
        <mark>{sentence.text}</mark>
      </p>
      <p class="quiet">
        Hop {hop}, score <span class="figure">{figure(sentence.score, 3)}</span>
        {sentence.activated_by.length > 0 && <>, by way of {sentence.activated_by.slice(0, 6).join(", ")}</>}
        {sentence.recall_probability > 0 && <>, recalled with {figure(sentence.recall_probability)}</>}
      </p>
      <dl class="bars">
        {PARTS.filter(([part]) => !(part === "time_factor" && sentence.time_factor === 1)).map(([part, name, term]) => (
          <>
            <dt>
              <Term name={term}>{name}</Term>
            </dt>
            <dd>
              <Bar value={sentence[part]} most={Math.max(1, sentence.task_factor, sentence.time_factor)} tone={part === "task_factor" && sentence.task_factor !== 1 ? "warm" : "accent"} />
            </dd>
            <dd class="number">
              {figure(sentence[part])}
              {part === "task_factor" && sentence.task_perplexity < 1 && <span class="quiet"> <Term name="perplexity">perplexity</Term> {figure(sentence.task_perplexity)}</span>}
            </dd>
          </>
        ))}
      </dl>
    </div>
  );
}

interface Cause {
  feedback_id: number;
  judge: string;
  question: string;
  applied_at: string;
  amount: number;
  parts: string;
}

interface CausesProps {
  causes: readonly Cause[];
  cut: boolean;
  nothing: string;
  /** Writes how much a verdict moved it. */
  show?: (amount: number) => string;
}

/** The verdicts behind something, each with how much it moved it. */
export function Causes({ causes, cut, nothing, show = (amount) => signed(amount, 3) }: CausesProps) {
  if (causes.length === 0) return <p class="quiet">{nothing}</p>;
  const most = Math.max(...causes.map((one) => Math.abs(one.amount)), 1e-9);
  return (
    <>
      <ol class="causes">
        {causes.map((one) => (
          <li key={one.feedback_id}>
            <span>
              <a href={address("learned", String(one.feedback_id))}>Verdict {one.feedback_id}</a> of {one.judge} on “{one.question}”
              <small class="quiet">
                {" "}
                {moment(one.applied_at)}
                {one.parts && `; ${one.parts}`}
              </small>
            </span>
            <Bar value={one.amount} least={-most} most={most} tone={one.amount < 0 ? "bad" : "good"} />
            <span class="number">{show(one.amount)}</span>
          </li>
        ))}
      </ol>
      {cut && <p class="quiet">There may be more; shown are the {counted(causes.length, "strongest one", "strongest")}.</p>}
    </>
  );
}

/** `textSince`: when the passage's text became what it is. */
export function ofPassage(one: Schemas["PassageInfluenceOut"], textSince?: string): Cause {
  const earlier = textSince !== undefined && new Date(one.applied_at) < new Date(textSince);
  const parts = [
    earlier && "on an earlier text of the passage",
    one.memory && `memories ${signed(one.memory, 3)}`,
    one.recall && `recall ${signed(one.recall, 3)}`,
  ];
  return { ...one, amount: one.score, parts: parts.filter(Boolean).join(", ") };
}

/** A change of a probability in points: "+12 points" from 50% to 62%. */
export const points = (amount: number): string => `${signed(100 * amount, 1)} points`;

export const ofSufficiency = (one: Schemas["SufficiencyInfluenceOut"]): Cause => ({ ...one, amount: one.probability, parts: "" });
