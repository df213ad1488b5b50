/** How likely the first five passages hold all the evidence, as an arc, a number and words. */

import { percent } from "./basic";

const WORDS: readonly (readonly [number, string, string])[] = [
  [0.9, "Almost surely enough", "good"],
  [0.7, "Probably enough", "good"],
  [0.5, "More likely enough than not", "warm"],
  [0.25, "Something is likely missing", "warm"],
  [0, "Most likely not enough", "bad"],
];

export function inWords(probability: number): string {
  return WORDS.find(([from]) => probability >= from)?.[1] ?? "";
}

export function Gauge({ probability }: { probability: number | null | undefined }) {
  if (probability === null || probability === undefined) {
    return <p class="quiet">Only the default profile with the graph estimates whether the evidence is enough.</p>;
  }
  const tone = WORDS.find(([from]) => probability >= from)?.[2] ?? "bad";
  const length = Math.PI * 40;
  const reading = `${percent(probability)}: ${inWords(probability).toLowerCase()}`;
  return (
    <div class="gauge" role="img" aria-label={`Probability that the first five passages hold all the evidence: ${reading}`}>
      <svg viewBox="0 0 100 56" aria-hidden="true">
        <path class="rail" d="M10 50a40 40 0 0 1 80 0" />
        <path class={`stroke-${tone}`} d="M10 50a40 40 0 0 1 80 0" stroke-dasharray={`${length * probability} ${length}`} />
        {[0.25, 0.5, 0.75].map((at) => (
          <path key={at} class="tick" d="M5 50h4" transform={`rotate(${180 * at} 50 50)`} />
        ))}
        <text x="50" y="47">
          {percent(probability)}
        </text>
      </svg>
      <div class="stack close" aria-hidden="true">
        <strong>{inWords(probability)}</strong>
        <span class="quiet">How likely the first five passages hold all the evidence</span>
      </div>
    </div>
  );
}
