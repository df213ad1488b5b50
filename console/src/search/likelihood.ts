/** How probably an answer's passages hold what was asked for. */

import type { Schemas } from "../service";
import { words } from "./words";

type Answer = Schemas["QueryOut"];

/** Least probabilities from which on the page says that the answer is very likely, or likely, among the passages. */
const VERY_LIKELY = 0.9;
const LIKELY = 0.7;

export const isLikely = ({ sufficiency }: Answer): boolean => (sufficiency ?? 0) >= LIKELY;

/** Whether that is less probable than with nine of ten right answers of the collection. */
export const isInsufficient = ({ sufficiency, sufficiency_level: level }: Answer): boolean =>
  typeof sufficiency === "number" && !!level && sufficiency < level.value;

/** Says how probably the passages hold the whole answer; nothing of it where it is open. */
export function sayLikelihood(answer: Answer): string {
  if (answer.passages.length === 0) return words.none;
  if (isInsufficient(answer)) return words.notFound;
  if (!isLikely(answer)) return words.best;
  return (answer.sufficiency ?? 0) >= VERY_LIKELY ? words.veryLikely : words.likely;
}
