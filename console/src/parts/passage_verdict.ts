/** What a thumb on one passage of an answer says: as a rating that cites it, and down with the reason `irrelevant`. */

import type { Verdict } from "engram-client";

import type { Schemas } from "../service";

export function passageVerdict(answer: Schemas["QueryOut"], passageId: string, up: boolean): Verdict {
  if (up) return { supporting_passages: [passageId] };
  const sentences = answer.passages.find((one) => one.passage_id === passageId)?.sentences ?? [];
  return { rejected: sentences.map(({ sentence_id }) => sentence_id) };
}
