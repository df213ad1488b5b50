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
  if (own === undefined || other === undefined || Object.keys(own.features).length === 0) {
    const [here, there] = [figure(passage.score, 3), figure(neighbour.score, 3)];
    return `Ranked ${ordinal(rank)} because its sentences score ${here}, and those of ${title} ${there}.`;
  }
  const [winner, loser] = at === 0 ? [own, other] : [other, own];
  const factors = leads(winner, loser);
  if (factors.length === 0) return `Ranked ${ordinal(rank)}, with nearly the same score as ${title}.`;
  const list = enumerate(factors.map(([label, lead]) => `${decapitalize(label)} (${signed(lead)})`));
  return at === 0
    ? `Ranked first because ${list} ${factors.length === 1 ? "lifts" : "lift"} its score above that of ${title}, which is second.`
    : `Ranked ${ordinal(rank)} because ${title}, which is ${ordinal(at)}, gains more from ${list}.`;
}

/** Say where the passage would be without memory; empty if memory changes nothing. */
export function memoryEffect(traced: TracedPassage | undefined): string {
  if (traced === undefined || traced.rank_without_memory === traced.rank) return "";
  return traced.rank_without_memory === null
    ? "Without memory it would not be in the answer."
    : `Without memory it would be ${ordinal(traced.rank_without_memory)}.`;
}

/** What the winner's factors add over the loser's, by label; the largest leads first. */
function leads(winner: TracedPassage, loser: TracedPassage): (readonly [string, number])[] {
  const totals = new Map<string, number>();
  const count = ({ features, recall }: TracedPassage, sign: 1 | -1) => {
    const parts = Object.entries(features).map(([feature, { value, weight }]) => [feature, value * weight] as const);
    for (const [feature, adds] of [...parts, ["recall", recall] as const]) {
      const label = sharedLabel(feature);
      totals.set(label, (totals.get(label) ?? 0) + sign * adds);
    }
  };
  count(winner, 1);
  count(loser, -1);
  return [...totals]
    .filter(([, lead]) => lead >= LEAST)
    .sort(([, one], [, other]) => other - one)
    .slice(0, NAMED);
}

const decapitalize = (label: string): string => label.charAt(0).toLowerCase() + label.slice(1);

function enumerate(items: readonly string[]): string {
  return items.length < 2 ? (items[0] ?? "") : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;
}
