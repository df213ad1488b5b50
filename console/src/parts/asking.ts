/** A question and what became of it: kept while one looks at other pages. */

import type { Schemas } from "../service";

export type Arm = Required<Pick<Schemas["ArmIn"], "memory" | "profile" | "strategy">>;
export type Mark = "supporting" | "rejected";

export interface Missing {
  sentence_id: number;
  text: string;
  title: string;
}

export interface Changed {
  verdict: Schemas["FeedbackOut"];
  said: string;
  before: Schemas["CompareOut"];
  after: Schemas["CompareOut"];
  takenBack: boolean;
  /** Texts of what was missing, which the answer has not. */
  missing: Missing[];
}

export interface Asked {
  collection: string;
  question: string;
  arm: Arm;
  answer: Schemas["QueryOut"] | null;
  /** Whether an answer in words is wanted, and the one that there is. */
  worded: boolean;
  words: Schemas["AnswerOut"] | null;
  /** Ranks in the answer before this one, where it was to the same question. */
  earlier: Map<string, number> | null;
  marks: Map<number, Mark>;
  missing: Missing[];
  whole: boolean;
  changed: Changed | null;
}

export const ARM: Arm = { memory: "read", profile: "default", strategy: "graph" };

export const blank = (collection: string): Asked => ({
  collection,
  question: "",
  arm: ARM,
  answer: null,
  worded: false,
  words: null,
  earlier: null,
  marks: new Map(),
  missing: [],
  whole: false,
  changed: null,
});

const kept = new Map<string, Asked>();
export const remembered = (collection: string): Asked => kept.get(collection) ?? blank(collection);
export const remember = (asked: Asked): void => void kept.set(asked.collection, asked);

/** As a body of `/query/compare` wants it: without memory beside the arm, as deep as it goes. */
export function deep(asked: Asked): Schemas["CompareIn"] {
  const { collection, question, arm } = asked;
  return { collection, query: question, a: { ...arm, memory: "off" }, b: arm, top_k: DEEP };
}

/** How far down ranks are told. */
export const DEEP = 100;
/** Passages that an answer shows. */
export const SHOWN = 10;
