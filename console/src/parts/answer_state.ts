/** Answers with what a judge marked on them. They stay in memory while the tab is open. */

import { read, type Schemas } from "../service";
import { address, type Shared } from "../state";
import { parseFilter, type Question, questionFrom, settingsOf } from "./question";

export type Mark = "supporting" | "rejected";
/** An answer in words without its retrieval. */
export type Words = Omit<Schemas["AnswerOut"], "retrieval">;

/** A sentence that the answer lacks. */
export interface MissingSentence {
  sentence_id: number;
  text: string;
  title: string;
}

/** The ranks before and after a verdict. */
export interface VerdictEffect {
  verdict: Schemas["FeedbackOut"];
  summary: string;
  /** Null where nothing compares arms. */
  before: Schemas["CompareOut"] | null;
  after: Schemas["CompareOut"] | null;
  isRevoked: boolean;
  missing: readonly MissingSentence[];
}

/** A thumb that the service stored, with the verdict that it became. */
export interface Thumb {
  feedbackId: number;
  up: boolean;
  reason: string | null;
}

/** The judge's thumbs under one answer. */
export interface Thumbs {
  answer: Thumb | null;
  passages: ReadonlyMap<string, Thumb>;
}

export const NO_THUMBS: Thumbs = { answer: null, passages: new Map() };

export interface AnswerState {
  collection: string;
  question: Question;
  answer: Schemas["QueryOut"];
  words: Words | null;
  /** Ranks in the answer before this one, if it was to the same question. */
  earlierRanks: ReadonlyMap<string, number> | null;
  marks: ReadonlyMap<number, Mark>;
  missing: readonly MissingSentence[];
  /** Whether the marks name all the evidence. */
  isComplete: boolean;
  effect: VerdictEffect | null;
  /** Null until they were read from the service. */
  thumbs: Thumbs | null;
  /** Whether it stands in for a stored answer that could not be read. */
  isSubstitute: boolean;
}

/** How far down ranks are compared. */
const COMPARED = 100;

export function newAnswer(
  collection: string,
  question: Question,
  answer: Schemas["QueryOut"],
  words: Words | null,
  thumbs: Thumbs | null = null,
): AnswerState {
  const unmarked = { marks: new Map(), missing: [], isComplete: false };
  return { collection, question, answer, words, earlierRanks: null, ...unmarked, effect: null, thumbs, isSubstitute: false };
}

/** The address of an answer. It carries the question too, for readers who may not see the stored answer. */
export function answerAddress({ collection, question, answer }: AnswerState): string {
  return address("ask", answer.query_id, { c: collection, ...settingsOf(question) });
}

/** The question of a stored answer; `settings` are those of its address. */
export function storedQuestion(answer: Schemas["EpisodeOut"], settings: URLSearchParams): Question {
  const { topK, inWords } = questionFrom(settings);
  const arm = { memory: answer.memory, profile: answer.profile, strategy: answer.strategy ?? "graph" };
  return { text: answer.query, arm, topK, inWords, filter: answer.filter ? JSON.stringify(answer.filter) : "" };
}

/** The body of `POST /query/compare`: without memory beside the answer's arm, `COMPARED` passages of each. */
export function comparisonBody({ collection, question: { text, arm, filter } }: AnswerState): Schemas["CompareIn"] {
  const metadata = parseFilter(filter);
  return {
    collection,
    query: text,
    a: { ...arm, memory: "off" },
    b: arm,
    top_k: COMPARED,
    ...(metadata === undefined ? {} : { filter: metadata }),
  };
}

/** Ranks of the answer's passages without memory and with it; null where nothing compares arms. */
export async function compareRanks(shared: Shared, state: AnswerState): Promise<Schemas["CompareOut"] | null> {
  if (!shared.has("experiments")) return null;
  return read<Schemas["CompareOut"]>(shared.engram.api.POST("/query/compare", { body: comparisonBody(state) }));
}

export const ranksOf = (answer: Schemas["QueryOut"]): ReadonlyMap<string, number> =>
  new Map(answer.passages.map((passage, at) => [passage.passage_id, at + 1]));

/** Answers that stay in memory; others are read from the service again. */
const ANSWERS = 40;
const answers = new Map<string, AnswerState>();
const latestIds = new Map<string, string>();

export const answerById = (queryId: string): AnswerState | undefined => answers.get(queryId);
/** The answer that was looked at last in the collection. */
export const latestAnswer = (collection: string): AnswerState | undefined => answers.get(latestIds.get(collection) ?? "");

export function remember(state: AnswerState): void {
  const id = state.answer.query_id;
  answers.delete(id);
  answers.set(id, state);
  latestIds.set(state.collection, id);
  const [oldest] = answers.keys();
  if (answers.size > ANSWERS && oldest !== undefined) answers.delete(oldest);
}

/** Change an answer in memory; null if it is not there. */
export function update(queryId: string, part: Partial<AnswerState>): AnswerState | null {
  const state = answers.get(queryId);
  if (state === undefined) return null;
  const changed = { ...state, ...part };
  answers.set(queryId, changed);
  return changed;
}

const WORDS = "engram.words";
/** Answers in words that stay in the tab's storage. */
const WORDED = 50;

/** Keep an answer in words while the tab is open; the service stores only what was retrieved. */
export function rememberWords(queryId: string, words: Words): void {
  const all = [...storedWords(), [queryId, words] as const].slice(-WORDED);
  sessionStorage.setItem(WORDS, JSON.stringify(all));
}

export const wordsOf = (queryId: string): Words | null => storedWords().find(([id]) => id === queryId)?.[1] ?? null;

function storedWords(): (readonly [string, Words])[] {
  return JSON.parse(sessionStorage.getItem(WORDS) ?? "[]") as (readonly [string, Words])[];
}
