/** Which sentence of a passage answers the question, and where it stands in the text. */

import type { Schemas } from "../service";

type Passage = Schemas["PassageHit"];
type Sentence = Schemas["SentenceOut"];

/** Letters of a word that count, so that forms of one word are alike, and least letters of a word that counts. */
const STEM = 5;
const SHORTEST = 4;

/** The text before the best sentence, the sentence as it stands in the text or empty, and the text after it. */
export function splitAtSentence(passage: Passage, question: string): readonly [string, string, string] {
  const { text } = passage;
  const best = bestSentence(passage, question);
  if (best === undefined) return ["", "", text];
  // A sentence is kept with single spaces, the text as it came.
  const words = best.text.trim().split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const found = new RegExp(words.join("\\s+")).exec(text);
  // A row of a table is a sentence with the names of its columns, which do not stand beside it.
  if (found === null) return ["", best.text, `\n${text}`];
  return [text.slice(0, found.index), found[0], text.slice(found.index + found[0].length)];
}

/**
 * The sentence that the service found to be nearest: of those that the question itself led to, since later hops look for
 * what stands with these. If it found none, one that has words of the question.
 */
function bestSentence({ sentences, title, source }: Passage, question: string): Sentence | undefined {
  const headings = new Set([title, source.document, ...source.heading]);
  const texts = sentences.filter((one) => !headings.has(one.text.trim()));
  const hop = ({ hops }: Sentence): number => hops[0] ?? 1; // none of a sentence that was remembered
  const found = texts.filter(({ score }) => typeof score === "number");
  const first = Math.min(...found.map(hop));
  const nearest = highest(found, (one) => (hop(one) === first ? (one.score ?? 0) : -Infinity));
  if (nearest !== undefined) return nearest;
  const asked = stems(question);
  return highest(texts, (one) => [...stems(one.text)].filter((stem) => asked.has(stem)).length || -Infinity);
}

function highest(sentences: readonly Sentence[], by: (one: Sentence) => number): Sentence | undefined {
  const [best] = sentences.map((one) => [by(one), one] as const).sort(([one], [other]) => other - one);
  return best !== undefined && best[0] > -Infinity ? best[1] : undefined;
}

const stems = (text: string): Set<string> =>
  new Set((text.toLowerCase().match(/\p{L}+/gu) ?? []).filter((word) => word.length >= SHORTEST).map((word) => word.slice(0, STEM)));
