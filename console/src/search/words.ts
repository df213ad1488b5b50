/** What the page says of probabilities and failures. */

import { EngramError } from "../service";

/** Says how probably the results hold the whole answer. */
export function sayLikelihood(probability: number): string {
  if (probability >= 0.9) return "The answer is very likely here.";
  if (probability >= 0.7) return "The answer is likely here.";
  if (probability >= 0.4) return "Perhaps the answer is here, or a part of it.";
  return "The answer is probably not here. These passages are the nearest.";
}

const FAILURES: Readonly<Record<number, string>> = {
  0: "The service cannot be reached. It may be starting, or your connection is gone.",
  403: "You may not do this here.",
  404: "There is no such collection, or you may not search it.",
  413: "The question is too long.",
  422: "The service does not understand this question or its filter. The question may be too long.",
  429: "Too many questions came at once, or today's are used up. Wait a little.",
};

/** Says why a request failed. */
export function sayFailure(error: unknown): string {
  if (!(error instanceof EngramError)) return "The page failed.";
  return FAILURES[error.status] ?? "The service cannot answer just now.";
}

/** Says what a thumb did. `effect` is that of the verdict's receipt. */
export function sayEffect(up: boolean, effect: string | null | undefined): string {
  if (effect === null || effect === undefined) return "Thank you. It is stored, and counts shortly.";
  if (!effect.startsWith("Nothing")) {
    return up
      ? "Thank you. For this question and others like it, this passage goes up."
      : "Thank you. For this question and others like it, this passage goes down.";
  }
  return effect.includes("daily cap")
    ? "Thank you. It is stored, but changes nothing now: your ratings of today have moved this as far as they may."
    : "Thank you. It is stored, but changes nothing for this question.";
}
