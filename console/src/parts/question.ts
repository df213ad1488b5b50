/** A question with its options: as an address carries it, and as the service takes it. */

import type { Schemas } from "../service";

export type Arm = Required<Pick<Schemas["ArmIn"], "memory" | "profile" | "strategy">>;

export interface Question {
  text: string;
  arm: Arm;
  /** Passages of the answer, from 1 to `MAX_TOP_K`. */
  topK: number;
  /** Metadata that passages must contain, as JSON text; empty for none. */
  filter: string;
  /** Whether a language model writes an answer. */
  inWords: boolean;
}

export const TOP_K = 10;
export const MAX_TOP_K = 100;
export const BLANK: Question = {
  text: "",
  arm: { memory: "read", profile: "default", strategy: "graph" },
  topK: TOP_K,
  filter: "",
  inWords: false,
};

/** Read the question that an address carries. A value that the page does not know counts as absent. */
export function questionFrom(settings: URLSearchParams): Question {
  const topK = Number(settings.get("k") ?? TOP_K);
  return {
    text: settings.get("q") ?? "",
    arm: {
      memory: settings.get("memory") === "off" ? "off" : "read",
      profile: settings.get("profile") === "paper" ? "paper" : "default",
      strategy: "graph",
    },
    topK: isTopK(topK) ? topK : TOP_K,
    filter: settings.get("filter") ?? "",
    inWords: settings.get("words") === "1",
  };
}

export const isTopK = (value: number): boolean => Number.isInteger(value) && value >= 1 && value <= MAX_TOP_K;

/** Settings of an address that carries the question; defaults are left out. */
export function settingsOf({ text, arm, topK, filter, inWords }: Question): Record<string, string | undefined> {
  return {
    q: text.trim(),
    memory: arm.memory === "off" ? "off" : undefined,
    profile: arm.profile === "paper" ? "paper" : undefined,
    k: topK === TOP_K ? undefined : String(topK),
    filter: filter.trim() || undefined,
    words: inWords ? "1" : undefined,
  };
}

/**
 * Read a filter as the service takes it; undefined for none.
 *
 * @throws Error if the text is no JSON object.
 */
export function parseFilter(text: string): Record<string, unknown> | undefined {
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
export function queryBody(collection: string, { text, arm, topK, filter }: Question): Schemas["QueryIn"] {
  const metadata = parseFilter(filter);
  return {
    collection,
    query: text.trim(),
    arm,
    top_k: topK,
    include: ["sentences", "trace"],
    ...(metadata === undefined ? {} : { filter: metadata }),
  };
}
