/** Terms with their meaning, which shows under the pointer and under the keyboard's focus. */

import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";

/** Terms of docs/glossary.md, each with its meaning in a sentence or two. */
const MEANINGS = {
  activation: "How strongly the hop reached the entities that the sentence mentions.",
  agreement: "How often the judge's verdicts agreed with those of other judges.",
  belief: "How surely the fact is taken to be true, from 0 to 1.",
  generation: "One evolution of the collection's passage keys. An earlier one can serve again.",
  likeness: "How close the memory is to the question of the verdict: 1 is the same, 0 unrelated.",
  meaning: "How close the sentence is to the question: the cosine of their vectors.",
  memory: "What verdicts taught. Off: the answer ignores it.",
  named: "Share of the question's words and unknowns that the evidence names. It does not say whether the evidence is enough.",
  noise: "How unreliable a verdict is taken to be: for what it supports, and for what it rejects.",
  perplexity: "How unsure a memory is: 1 means that nothing is known, towards 0 it is sure.",
  planner: "Decides what a session asks next.",
  pool: "The sentences that the session has gathered.",
  profile: "A set of constants: Paper has the published ones, Default those that Engram ships.",
  score: "The weighted sum of the passage's features. Scores of one answer compare, those of two answers do not.",
  shadow: "Live: answers use what verdicts taught. Shadow: they ignore it, while verdicts still teach.",
  standing: "How far a judge is trusted that nobody vouched for.",
  sufficiency: "Probability that the first five passages hold all the evidence.",
  taskFactor: "How memory raises or lowers the sentence: 1 changes nothing.",
  timeFactor: "How well the dates of the sentence agree with the dates in the question: 1 changes nothing.",
} as const;

export type TermName = keyof typeof MEANINGS;

export function Term({ name, children }: { name: TermName; children: ComponentChildren }) {
  return <Explained meaning={MEANINGS[name]}>{children}</Explained>;
}

interface Spot {
  left: number;
  top: number;
}

const WIDTH = 280;
const MARGIN = 8;

/** Words with an explanation of their own. */
export function Explained({ meaning, children }: { meaning: string; children: ComponentChildren }) {
  const id = useId();
  const [spot, setSpot] = useState<Spot | null>(null);
  if (!meaning) return <>{children}</>;
  const show = (event: Event) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    setSpot({ left: Math.max(MARGIN, Math.min(box.left, innerWidth - WIDTH - MARGIN)), top: box.bottom + 4 });
  };
  const hide = () => setSpot(null);
  return (
    <span class="term" onMouseEnter={show} onMouseLeave={hide} onFocusIn={show} onFocusOut={hide}>
      <button type="button" class="word" aria-describedby={id} onKeyDown={(event) => event.key === "Escape" && hide()}>
        {children}
      </button>
      <span role="tooltip" id={id} hidden={spot === null} style={spot ? { left: `${spot.left}px`, top: `${spot.top}px` } : {}}>
        {meaning}
      </span>
    </span>
  );
}
