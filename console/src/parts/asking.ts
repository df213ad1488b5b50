/** Questions and their answers: each answer has an address, and what is marked on it stays while the tab is open. */

import type { Schemas } from "../service";

export type Arm = Required<Pick<Schemas["ArmIn"], "memory" | "profile" | "strategy">>;
export type Mark = "supporting" | "rejected";
/** An answer in words without its retrieval. */
export type Worded = Omit<Schemas["AnswerOut"], "retrieval">;

/** A question with its options, as an address carries them. */
export interface Request {
  question: string;
  arm: Arm;
  topK: number;
  /** Metadata that passages must contain, as JSON text; empty for none. */
  filter: string;
  /** Whether a language model writes an answer. */
  worded: boolean;
}

export interface Missing {
  sentence_id: number;
  text: string;
  title: string;
}

export interface Changed {
  verdict: Schemas["FeedbackOut"];
  summary: string;
  before: Schemas["CompareOut"];
  after: Schemas["CompareOut"];
  takenBack: boolean;
  /** Texts of what was missing, which the answer has not. */
  missing: Missing[];
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

export interface Asked {
  collection: string;
  request: Request;
  answer: Schemas["QueryOut"];
  words: Worded | null;
  /** Ranks in the answer before this one, if it was to the same question. */
  earlier: ReadonlyMap<string, number> | null;
  marks: ReadonlyMap<number, Mark>;
  missing: readonly Missing[];
  whole: boolean;
  changed: Changed | null;
  /** Null until they were read from the service. */
  thumbs: Thumbs | null;
}

export const ARM: Arm = { memory: "read", profile: "default", strategy: "graph" };
/** Passages that an answer shows by default. */
export const SHOWN = 10;
export const MOST_SHOWN = 100;
/** How far down ranks are compared. */
export const DEEP = 100;
export const BLANK: Request = { question: "", arm: ARM, topK: SHOWN, filter: "", worded: false };

export function fresh(collection: string, request: Request, answer: Schemas["QueryOut"], words: Worded | null): Asked {
  return { collection, request, answer, words, earlier: null, marks: new Map(), missing: [], whole: false, changed: null, thumbs: null };
}

/** The request that an address carries. */
export function requestOf(settings: URLSearchParams): Request {
  const topK = Number(settings.get("k") ?? SHOWN);
  return {
    question: settings.get("q") ?? "",
    arm: {
      memory: settings.get("memory") === "off" ? "off" : "read",
      profile: settings.get("profile") === "paper" ? "paper" : "default",
      strategy: "graph",
    },
    topK: Number.isInteger(topK) && topK >= 1 && topK <= MOST_SHOWN ? topK : SHOWN,
    filter: settings.get("filter") ?? "",
    worded: settings.get("words") === "1",
  };
}

/** Settings of an address that carries the request. */
export function settingsOf(request: Request): Record<string, string | undefined> {
  return {
    q: request.question.trim(),
    memory: request.arm.memory === "off" ? "off" : undefined,
    profile: request.arm.profile === "paper" ? "paper" : undefined,
    filter: request.filter.trim() || undefined,
    ...kept(request),
  };
}

/** Settings that a stored answer does not have itself. */
export function kept({ topK, worded }: Request): Record<string, string | undefined> {
  return { k: topK === SHOWN ? undefined : String(topK), words: worded ? "1" : undefined };
}

/** The request of a stored answer; `settings` are those of its address. */
export function storedRequest(answer: Schemas["EpisodeOut"], settings: URLSearchParams): Request {
  const { topK, worded } = requestOf(settings);
  const arm = { memory: answer.memory, profile: answer.profile, strategy: answer.strategy ?? "graph" };
  return { question: answer.query, arm, topK, worded, filter: answer.filter ? JSON.stringify(answer.filter) : "" };
}

/**
 * The filter as the service takes it; undefined for none.
 *
 * @throws Error if the text is no JSON object.
 */
export function filterOf(text: string): Record<string, unknown> | undefined {
  if (text.trim() === "") return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error('The filter must be a JSON object, such as {"topic": "space"}.');
  }
  return value as Record<string, unknown>;
}

/** The body of `POST /query` and `POST /answer`. */
export function bodyOf(collection: string, request: Request): Schemas["QueryIn"] {
  const { question, arm, topK, filter } = request;
  const body = { collection, query: question.trim(), arm, top_k: topK, include: ["sentences" as const, "trace" as const] };
  const metadata = filterOf(filter);
  return (metadata === undefined ? body : { ...body, filter: metadata }) as Schemas["QueryIn"];
}

/** The body of `POST /query/compare`: without memory beside the answer's arm, `DEEP` passages of each. */
export function deep({ collection, request }: Asked): Schemas["CompareIn"] {
  const { question, arm, filter } = request;
  const body = { collection, query: question, a: { ...arm, memory: "off" as const }, b: arm, top_k: DEEP };
  const metadata = filterOf(filter);
  return (metadata === undefined ? body : { ...body, filter: metadata }) as Schemas["CompareIn"];
}

export const ranks = (answer: Schemas["QueryOut"]): ReadonlyMap<string, number> =>
  new Map(answer.passages.map((passage, at) => [passage.passage_id, at + 1]));

/** Answers that stay in memory; others are read from the service again. */
const ANSWERS = 40;
const answers = new Map<string, Asked>();
const latestIds = new Map<string, string>();

export const answered = (queryId: string): Asked | undefined => answers.get(queryId);
/** The answer that was looked at last in the collection. */
export const latest = (collection: string): Asked | undefined => answers.get(latestIds.get(collection) ?? "");

export function remember(asked: Asked): void {
  const id = asked.answer.query_id;
  answers.delete(id);
  answers.set(id, asked);
  latestIds.set(asked.collection, id);
  const [oldest] = answers.keys();
  if (answers.size > ANSWERS && oldest !== undefined) answers.delete(oldest);
}

const WORDS = "engram.words";
const WORDED = 50;

/** Keep an answer in words for as long as the tab is open; the service stores only what was retrieved. */
export function rememberWords(queryId: string, words: Worded): void {
  const all = [...storedWords(), [queryId, words] as const].slice(-WORDED);
  sessionStorage.setItem(WORDS, JSON.stringify(all));
}

export const wordsOf = (queryId: string): Worded | null => storedWords().find(([id]) => id === queryId)?.[1] ?? null;

function storedWords(): (readonly [string, Worded])[] {
  return JSON.parse(sessionStorage.getItem(WORDS) ?? "[]") as (readonly [string, Worded])[];
}
