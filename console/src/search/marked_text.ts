/** Which sentences of a passage probably answer the question, and where its sentences stand in the text. */

import type { Schemas } from "../service";

type Answer = Schemas["QueryOut"];
type Passage = Schemas["PassageHit"];

/** Letters of a word that count, so that forms of one word are alike, and least letters of a word that counts. */
const STEM = 5;
const SHORTEST = 4;
/** What the passage's best score counts, beside having all words of the question. */
const SCORE_WEIGHT = 0.25;
/** A second sentence is marked from this share of the best one's value on. */
const SECOND = 0.4;
/** Characters of a label that ends in a colon, such as "Without make:". */
const LABEL = 80;

/** From `start` on, until before `end`, in characters of the text. */
export interface Range {
  start: number;
  end: number;
}

export interface MarkedText {
  /** Where sentences stand, in order. */
  places: readonly Range[];
  /** Those that probably answer, in order. */
  marks: readonly Range[];
  /** Others that do and stand nowhere as they are: rows of a table, with the names of its columns. */
  rows: readonly string[];
}

/** Mark the two best sentences: by the question's words, the rare ones most, and by what the service found. */
export function markText({ query, passages }: Answer, passage: Passage): MarkedText {
  const { text, title, source, sentences } = passage;
  const places = locate(text, sentences.map((one) => one.text));
  const headings = new Set([title, source.document, ...source.heading]);
  const share = wordShare(query, passages.flatMap((one) => one.sentences.map((sentence) => sentence.text)));
  const most = Math.max(...sentences.map(({ score }) => score ?? 0)) || 1;
  const valued = sentences
    .map((one, at) => ({ place: places[at], text: one.text, value: share(one.text) + (SCORE_WEIGHT * (one.score ?? 0)) / most }))
    .filter((one) => one.value > 0 && !headings.has(one.text.trim()) && !(one.text.length <= LABEL && /[:：]\s*$/.test(one.text)))
    .sort((one, other) => other.value - one.value);
  const best = valued.slice(0, 2).filter(({ value }) => value >= SECOND * (valued[0]?.value ?? 0));
  return {
    places: places.filter((one) => one !== undefined),
    marks: best.flatMap(({ place }) => place ?? []).sort((one, other) => one.start - other.start),
    rows: best.filter(({ place }) => place === undefined).map((one) => one.text),
  };
}

/** Find sentences in a text, in order; they are kept with single spaces, the text as it came. */
function locate(text: string, sentences: readonly string[]): (Range | undefined)[] {
  let from = 0;
  return sentences.map((sentence) => {
    const words = sentence.trim().split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    const pattern = new RegExp(words.join("\\s+"), "g");
    pattern.lastIndex = from;
    const found = pattern.exec(text);
    if (found === null) return undefined;
    from = pattern.lastIndex;
    return { start: found.index, end: from };
  });
}

/** The share of the question's words that a sentence has, those most that few of the sentences have. */
function wordShare(question: string, sentences: readonly string[]): (sentence: string) => number {
  const all = sentences.map(stems);
  const weights = [...stems(question)].map((stem) => {
    const count = all.filter((one) => one.has(stem)).length;
    return [stem, Math.log1p((all.length - count + 0.5) / (count + 0.5))] as const;
  });
  const sum = (counted: typeof weights) => counted.reduce((total, [, weight]) => total + weight, 0);
  const whole = sum(weights) || 1;
  return (sentence) => {
    const own = stems(sentence);
    return sum(weights.filter(([stem]) => own.has(stem))) / whole;
  };
}

const stems = (text: string): Set<string> =>
  new Set((text.toLowerCase().match(/\p{L}+/gu) ?? []).filter((word) => word.length >= SHORTEST).map((word) => word.slice(0, STEM)));

/** Characters of a text that is shown whole: an imported passage is no longer. */
const WHOLE = 1_300;
/** Characters of a longer one that are shown before the first mark and after the last, until more is wanted. */
const BEFORE = 220;
const AFTER = 600;

/** The part of a text that is shown at first: whole sentences around its marks, or all of a text of usual length. */
export function excerpt(text: string, { places, marks }: MarkedText): Range {
  if (text.length <= WHOLE) return { start: 0, end: text.length };
  const first = marks[0]?.start ?? 0;
  const last = marks.at(-1)?.end ?? 0;
  const start = lineStart(text, places.find((one) => one.start >= first - BEFORE)?.start ?? 0);
  const end = places.findLast((one) => one.end <= last + AFTER)?.end ?? text.lastIndexOf(" ", AFTER);
  return { start: Math.min(start, first), end: Math.max(end, last) };
}

/** The start of the line, where only a list's number or indentation stands before. */
function lineStart(text: string, start: number): number {
  const line = text.lastIndexOf("\n", start - 1) + 1;
  return start > 0 && !/\p{L}/u.test(text.slice(line, start)) ? line : start;
}
