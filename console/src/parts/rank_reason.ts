/** One sentence that says why a passage has its rank. */

import type { Schemas } from "../service";
import { figure, signed } from "./basic";
import { sharedLabel } from "./factor_labels";

type TracedPassage = Schemas["PassageTraceOut"];

const ORDINALS = ["", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
const ordinal = (rank: number): string => ORDINALS[rank] ?? `at rank ${rank}`;
/** Factors that the sentence names. */
const NAMED = 3;
/** The least difference that the sentence names. */
const LEAST = 0.005;

/**
 * Say why the passage is ranked where it is, by comparison with its neighbour.
 *
 * The first passage is compared with the second, any other with the one before it.
 */
export function rankReason(answer: Schemas["QueryOut"], passageId: string): string {
  const { passages } = answer;
  const at = passages.findIndex((one) => one.passage_id === passageId);
  const passage = passages[at];
  if (passage === undefined) return "";
  const rank = at + 1;
  if (passage.explored) return `Shown ${ordinal(rank)} to explore: by its score it would rank lower.`;
  const neighbour = passages[at === 0 ? 1 : at - 1];
  if (neighbour === undefined) return "Ranked first because it is the only passage of the answer.";
  const title = `“${neighbour.title ?? neighbour.passage_id}”`;
  const [own, other] = [passageId, neighbour.passage_id].map((id) => answer.trace?.passages?.find((one) => one.passage_id === id));
  const [here, there] = [figure(passage.score, 3), figure(neighbour.score, 3)];
  if (own === undefined || other === undefined)
    return `Ranked ${ordinal(rank)} with a score of ${here}, compared with ${there} of ${title}.`;
  if (Object.keys(own.features).length === 0) {
    return `Ranked ${ordinal(rank)} because its sentences score ${here}, and those of ${title} ${there}.`;
  }
  const differences = largestDifferences(own, other, at === 0 ? 1 : -1);
  if (differences.length === 0) return `Ranked ${ordinal(rank)}, with nearly the same score as ${title}.`;
  const list = enumerate(differences.map(([label, difference]) => `${decapitalize(label)} (${signed(difference)})`));
  return `Ranked ${ordinal(rank)} because of ${list}, compared with ${title}, which is ${ordinal(at === 0 ? 2 : at)}.`;
}

/** Say where the passage would be without memory; empty if memory changes nothing. */
export function memoryEffect(traced: TracedPassage | undefined): string {
  if (traced === undefined || traced.rank_without_memory === traced.rank) return "";
  return traced.rank_without_memory === null
    ? "Without memory it would not be in the answer."
    : `Without memory it would be ${ordinal(traced.rank_without_memory)}.`;
}

/** What the passage's factors add compared with another's, by label: those of the given sign, the largest first. */
function largestDifferences(own: TracedPassage, other: TracedPassage, sign: 1 | -1): (readonly [string, number])[] {
  const totals = new Map<string, number>();
  const count = ({ features, recall }: TracedPassage, direction: 1 | -1) => {
    const parts = Object.entries(features).map(([feature, { value, weight }]) => [feature, value * weight] as const);
    for (const [feature, adds] of [...parts, ["recall", recall] as const]) {
      const label = sharedLabel(feature);
      totals.set(label, (totals.get(label) ?? 0) + direction * adds);
    }
  };
  count(own, 1);
  count(other, -1);
  return [...totals]
    .filter(([, difference]) => sign * difference >= LEAST)
    .sort(([, one], [, another]) => sign * (another - one))
    .slice(0, NAMED);
}

const decapitalize = (label: string): string => label.charAt(0).toLowerCase() + label.slice(1);

function enumerate(items: readonly string[]): string {
  return items.length < 2 ? (items[0] ?? "") : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;
}
