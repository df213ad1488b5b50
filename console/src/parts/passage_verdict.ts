/** What a thumb on one passage of an answer says. */

import type { Verdict } from "engram-client";

import type { Schemas } from "../service";

/** Probability that a thumb down on a passage speaks of each of its sentences, as of a rating that cites it. */
const WEAK = 0.5;

export function passageVerdict(answer: Schemas["QueryOut"], passageId: string, up: boolean): Verdict {
  if (up) return { supporting_passages: [passageId] };
  const sentences = answer.passages.find((one) => one.passage_id === passageId)?.sentences ?? [];
  return { rejected: sentences.map(({ sentence_id }) => ({ sentence_id, examined: WEAK })) };
}
