/**
 * Engram's client: ask, judge, and ask again.
 *
 * Types are generated from the service's OpenAPI document (`schema.ts`). `Engram.api` has every route, typed;
 * the methods are those that a frontend needs.
 */

import createClient, { type Client } from "openapi-fetch";

import { events } from "./events.js";
import { retrying } from "./retries.js";
import type { components, paths } from "./schema.js";

export type Schemas = components["schemas"];
type Options<Body, Positional extends keyof Body> = Omit<Body, Positional>;
export type QueryOptions = Options<Schemas["JointQueryIn"], "query">;
export type AnswerOptions = Options<Schemas["AnswerIn"], "query">;
export type SessionOptions = Options<Schemas["SessionIn"], "question" | "wait"> & { idempotencyKey?: string };
export type RoundOptions = Omit<Schemas["RoundIn"], "wait">;
export type Verdict = Options<Schemas["FeedbackIn"], "query_id"> & { idempotencyKey?: string };
export type SessionVerdict = Schemas["SessionFeedbackIn"] & { idempotencyKey?: string };
/** An answer that can be rated, or the id of its query. */
export type Judged = string | { query_id: string; collection?: string };
/** A passage or a sentence of an answer, or the id of one: a passage's is a text, a sentence's a number. */
export type Cited = string | number | { passage_id: string } | { sentence_id: number };
/**
 * `reason`: of a thumb down `wrong_answer`, `missing`, `irrelevant` or `outdated`, or any text.
 * `as`: whom the answer was asked for, where that was somebody; the rating is your own all the same.
 */
export type ThumbOptions = Pick<Schemas["FeedbackIn"], "collection" | "reason" | "judge" | "wait" | "as"> & {
  up?: boolean | null;
  cited?: readonly Cited[];
  idempotencyKey?: string;
};
export type Passage = Schemas["PassageIn"];

export interface ListOptions {
  /** Only those of this status. */
  status?: Schemas["ListedSessionOut"]["status"];
  collection?: string;
}

export interface VerdictListOptions {
  /** Only those of this status. */
  status?: "pending" | "applied" | "parked" | "revoked";
  /** Only those on this answer. */
  queryId?: string;
  collection?: string;
}

export interface ErasureOptions {
  /** Keep what the verdicts taught, without the person. */
  anonymise?: boolean;
  collection?: string;
}

export interface SpanOptions extends ErasureOptions {
  /** From this moment on, as ISO 8601 writes it. */
  since?: string;
  /** Before this moment. */
  before?: string;
}

export interface EngramOptions {
  /** Where the service is; by default `ENGRAM_URL` of the environment, else `http://127.0.0.1:8000`. */
  url?: string;
  /** The collection that is meant where a call names no other; `default` by default. */
  collection?: string;
  /** An access key; by default `ENGRAM_ACCESS_KEY` of the environment. Give "" to send none. */
  key?: string;
  /**
   * Whom questions, reads and verdicts are for, as `user:ana` and `group:hr`; absent: the key itself. An option `as` of
   * a call goes before it. It takes the scope `act-as`.
   */
  as?: readonly string[];
  /** Further tries of what may succeed then: no connection, 429, 502, 503, 504. Three by default. */
  retries?: number;
  /** Of one try, in milliseconds; a minute by default. */
  timeout?: number;
  /** Instead of the platform's. */
  fetch?: typeof fetch;
}

/** The service refused, by an RFC 9457 problem document; `status` 0: it could not be reached. */
export class EngramError extends Error {
  override readonly name = "EngramError";

  constructor(
    readonly status: number,
    /** Stable identifier of the kind of problem, such as `urn:engram:problem:not-found`. */
    readonly type: string,
    readonly title: string,
    readonly detail: string,
    /** For an invalid request: where each value is and what is wrong with it. */
    readonly errors: readonly Record<string, unknown>[] = [],
    options?: ErrorOptions,
  ) {
    super(detail ? `${title}: ${detail}` : title, options);
  }
}

export class Engram {
  /** Every route of the service, typed; answers as `{data, error, response}`. */
  readonly api: Client<paths>;
  readonly collection: string;
  readonly #as: readonly string[] | undefined;

  constructor(options: EngramOptions = {}) {
    this.collection = options.collection ?? "default";
    this.#as = options.as;
    const key = options.key ?? variable("ENGRAM_ACCESS_KEY");
    this.api = createClient<paths>({
      baseUrl: address(options.url ?? variable("ENGRAM_URL") ?? "http://127.0.0.1:8000"),
      headers: key ? { authorization: `Bearer ${key}` } : {},
      fetch: retrying(options.fetch ?? fetch, options.retries ?? 3, options.timeout ?? 60_000),
    });
  }

  /** Whom a body is for. */
  #person(): { as?: string[] } {
    return this.#as === undefined ? {} : { as: [...this.#as] };
  }

  /** The same for a request without a body, where nobody in particular is an empty name. */
  #personParameter(): { as?: string[] } {
    return this.#as?.length === 0 ? { as: [""] } : this.#person();
  }

  /** Passages for a question, the best first; of several `collections` in one list. */
  query(question: string, options: QueryOptions = {}): Promise<Schemas["QueryOut"]> {
    const body = { collection: this.collection, ...this.#person(), ...options, query: question };
    return read(this.api.POST("/query", { body }));
  }

  /** Names and titles that begin with a prefix, to complete what is typed. */
  async suggestions(prefix: string, { collection = this.collection, limit = 10 } = {}): Promise<string[]> {
    const params = { path: { name: collection ?? "default" }, query: { prefix, limit, ...this.#personParameter() } };
    const found = read<Schemas["SuggestionsOut"]>(this.api.GET("/collections/{name}/suggestions", { params }));
    return (await found).suggestions;
  }

  /** The queries that were asked with this `trace_id`, oldest first. */
  async queriesOfTrace(traceId: string, collection = this.collection): Promise<Schemas["TracedQueryOut"][]> {
    const params = { query: { collection, trace_id: traceId } };
    return (await read<Schemas["TracedQueriesOut"]>(this.api.GET("/queries", { params }))).queries;
  }

  /** An answer in words, with the sentences it cites. */
  answer(question: string, options: AnswerOptions = {}): Promise<Schemas["AnswerOut"]> {
    const body = { collection: this.collection, ...this.#person(), ...options, query: question };
    return read(this.api.POST("/answer", { body }));
  }

  /** Say what of an answer helped. A try whose answer was lost is not counted twice. */
  feedback(queryId: string, { idempotencyKey, ...verdict }: Verdict): Promise<Schemas["FeedbackOut"]> {
    const body = { collection: this.collection, ...this.#person(), ...verdict, query_id: queryId };
    return read(this.api.POST("/feedback", { body, params: { header: once(idempotencyKey) } }));
  }

  /**
   * Rate an answer; `up: null` takes the rating back. A rating replaces the judge's earlier one of the same answer.
   * `cited`: passages and sentences that the answer used, as answers give them, or their ids.
   */
  thumb(
    answer: Judged,
    { up = true, cited = [], idempotencyKey, ...options }: ThumbOptions = {},
  ): Promise<Schemas["FeedbackOut"]> {
    const judged = typeof answer === "string" ? { query_id: answer } : answer;
    const body: Schemas["FeedbackIn"] = {
      collection: judged.collection ?? this.collection,
      ...this.#person(),
      ...options,
      query_id: judged.query_id,
      rating: up === null ? null : up ? "up" : "down",
    };
    if (cited.length > 0) body.cited = cited.map(citation);
    return read(this.api.POST("/feedback", { body, params: { header: once(idempotencyKey) } }));
  }

  /** Say what of a session helped: it reaches the queries of its rounds. */
  sessionFeedback(
    sessionId: string,
    { idempotencyKey, ...verdict }: SessionVerdict,
  ): Promise<Schemas["SessionFeedbackOut"]> {
    const body = { collection: this.collection, ...this.#person(), ...verdict };
    const params = { path: { session_id: sessionId }, header: once(idempotencyKey) };
    return read(this.api.POST("/sessions/{session_id}/feedback", { body, params }));
  }

  /** Take a question through rounds; `session` has what came of it, `sessionRounds` each as it comes. */
  startSession(
    question: string,
    { idempotencyKey, ...options }: SessionOptions = {},
  ): Promise<Schemas["AcceptedSession"]> {
    const body = { collection: this.collection, ...this.#person(), ...options, question, wait: false };
    return read(this.api.POST("/sessions", { body, params: { header: once(idempotencyKey) } }));
  }

  /** A session with its pool, its rounds, why it stopped and what it cost. */
  session(sessionId: string, collection = this.collection): Promise<Schemas["SessionOut"]> {
    const params = { path: { session_id: sessionId }, query: { collection, ...this.#personParameter() } };
    return read(this.api.GET("/sessions/{session_id}", { params }));
  }

  /** The sessions of the collection that one may see, the latest first. */
  async *sessions({ status, collection = this.collection }: ListOptions = {}): AsyncGenerator<
    Schemas["ListedSessionOut"]
  > {
    let before: string | undefined;
    do {
      const params = { query: { collection, status, before, ...this.#personParameter() } };
      const page = await read<Schemas["SessionsOut"]>(this.api.GET("/sessions", { params }));
      yield* page.sessions;
      before = page.next_before ?? undefined;
    } while (before !== undefined);
  }

  /** The rounds of a session as they come, those after the number `after`, until it ends; a stream that breaks off is taken up again. */
  async *sessionRounds(
    sessionId: string,
    { after = 0, collection = this.collection, signal }: { after?: number; collection?: string; signal?: AbortSignal } = {},
  ): AsyncGenerator<Schemas["RoundOut"]> {
    for (;;) {
      const params = { path: { session_id: sessionId }, query: { collection, ...this.#personParameter() }, header: { "last-event-id": after } };
      const path = "/sessions/{session_id}/events";
      const body = await read<ReadableStream<Uint8Array>>(this.api.GET(path, { params, parseAs: "stream", signal }));
      try {
        for await (const [kind, data] of events(body)) {
          if (kind === "end") return;
          const round = JSON.parse(data) as Schemas["RoundOut"];
          after = round.number;
          yield round;
        }
      } catch (error) {
        signal?.throwIfAborted();
        if (!broke(error)) throw error;
      }
    }
  }

  /** One more round of a session that stopped, with a sub-question or evidence of one's own, or as planned. */
  moreRounds(sessionId: string, wanted: RoundOptions = {}): Promise<Schemas["AcceptedSession"]> {
    const body = { collection: this.collection, ...this.#person(), ...wanted, wait: false };
    return read(this.api.POST("/sessions/{session_id}/rounds", { body, params: { path: { session_id: sessionId } } }));
  }

  /** Have a session end; what its rounds found stays. */
  cancelSession(sessionId: string, collection = this.collection): Promise<Schemas["SessionOut"]> {
    const params = { path: { session_id: sessionId }, query: { collection, ...this.#personParameter() } };
    return read(this.api.DELETE("/sessions/{session_id}", { params }));
  }

  /** The verdicts of the collection that one may see, in order of acceptance. */
  async *verdicts({ status, queryId, collection = this.collection }: VerdictListOptions = {}): AsyncGenerator<
    Schemas["ListedFeedbackOut"]
  > {
    let after: number | undefined;
    do {
      const params = { query: { collection, status, query_id: queryId, after } };
      const page = await read<Schemas["FeedbackPage"]>(this.api.GET("/feedback", { params }));
      yield* page.feedback;
      after = page.next_after ?? undefined;
    } while (after !== undefined);
  }

  /** Take a verdict back: what is learned is then as if it had never come. */
  revoke(feedbackId: number, collection = this.collection): Promise<Schemas["FeedbackDetail"]> {
    const params = { path: { feedback_id: feedbackId }, query: { collection } };
    return read(this.api.DELETE("/feedback/{feedback_id}", { params }));
  }

  /** Erase a query with its verdicts and its session, by a job; see `wait`. */
  eraseQuery(
    queryId: string,
    { anonymise, collection = this.collection }: ErasureOptions = {},
  ): Promise<Schemas["AcceptedJob"]> {
    const params = { path: { query_id: queryId }, query: { collection, anonymise }, header: once() };
    return read(this.api.DELETE("/queries/{query_id}", { params }));
  }

  /** Erase what was asked and judged in a span of time. */
  eraseQueries({ since, before, anonymise, collection = this.collection }: SpanOptions): Promise<Schemas["AcceptedJob"]> {
    const params = { query: { collection, from: since, to: before, anonymise }, header: once() };
    return read(this.api.DELETE("/queries", { params }));
  }

  /** Erase all that a judge said, and what it taught unless `anonymise`. */
  eraseJudge(
    judge: string,
    { anonymise, collection = this.collection }: ErasureOptions = {},
  ): Promise<Schemas["AcceptedJob"]> {
    const params = { path: { name: collection, judge }, query: { anonymise }, header: once() };
    return read(this.api.DELETE("/collections/{name}/judges/{judge}", { params }));
  }

  /** Erase all that a principal asked, judged and clicked. */
  erasePrincipal(
    principal: string,
    { anonymise, collection = this.collection }: ErasureOptions = {},
  ): Promise<Schemas["AcceptedJob"]> {
    const params = { path: { name: collection, principal }, query: { anonymise }, header: once() };
    return read(this.api.DELETE("/collections/{name}/principals/{principal}", { params }));
  }

  /** Receipts of erasures: what was removed, and which backups still have it. */
  async erasures(collection = this.collection): Promise<Schemas["ErasureOut"][]> {
    const params = { path: { name: collection } };
    return (await read<Schemas["ErasuresOut"]>(this.api.GET("/collections/{name}/erasures", { params }))).erasures;
  }

  /** What verdicts made of a sentence, and for a question, what that changes. */
  memory(sentenceId: number, query?: string): Promise<Schemas["SentenceMemoryOut"]> {
    const params = { path: { sentence_id: sentenceId }, query: { collection: this.collection, query } };
    return read(this.api.GET("/sentences/{sentence_id}/memory", { params }));
  }

  /** Hand in passages; a job makes them searchable, see `wait`. */
  ingest(passages: readonly Passage[], idempotencyKey?: string): Promise<Schemas["AcceptedJob"]> {
    const params = { query: { collection: this.collection }, header: once(idempotencyKey) };
    return read(this.api.POST("/passages", { body: { passages: [...passages] }, params }));
  }

  /** The job once it has succeeded; throws if it failed, was cancelled, refused lines, or `signal` says so. */
  async wait(
    job: Schemas["AcceptedJob"],
    { poll = 500, signal }: { poll?: number; signal?: AbortSignal } = {},
  ): Promise<Schemas["JobDetail"]> {
    const params = { path: { job_id: job.job_id }, query: { collection: job.collection } };
    for (;;) {
      signal?.throwIfAborted();
      const state = await read<Schemas["JobDetail"]>(this.api.GET("/jobs/{job_id}", { params }));
      if (state.status === "succeeded") {
        if (state.rejected === 0) return state;
        const reasons = state.errors.map(({ line, reason }) => `line ${line}: ${reason}`).join("; ");
        const title = `${state.rejected} of ${state.received} lines were refused`;
        throw new EngramError(200, "urn:engram:problem:job", title, reasons, state.errors);
      }
      if (state.status === "failed" || state.status === "cancelled") {
        throw new EngramError(200, "urn:engram:problem:job", `Job ${state.job_id} ${state.status}`, state.error ?? "");
      }
      await new Promise((resolve) => setTimeout(resolve, poll));
    }
  }

  /** A passage by your id. */
  passage(id: string): Promise<Schemas["PassageOut"]> {
    const query = { collection: this.collection, ...this.#personParameter() };
    const params = { path: { passage_id: id }, query };
    return read(this.api.GET("/passages/{passage_id}", { params }));
  }

  /** Count the passages that one sees, by a filter and by the values of a metadata field. */
  countPassages(wanted: Schemas["PassageCountIn"] = {}, collection = this.collection): Promise<Schemas["PassageCountOut"]> {
    const params = { path: { name: collection } };
    return read(this.api.POST("/collections/{name}/passages:count", { body: { ...this.#person(), ...wanted }, params }));
  }

  /** Remove a passage, its text and its vectors. */
  async deletePassage(id: string): Promise<void> {
    const params = { path: { passage_id: id }, query: { collection: this.collection } };
    await read(this.api.DELETE("/passages/{passage_id}", { params }));
  }

  /** All documents of the collection whose source begins with `prefix`, in the order of their sources. */
  async *documents(prefix = ""): AsyncGenerator<Schemas["DocumentOut"]> {
    let after: string | undefined;
    do {
      const params = { query: { collection: this.collection, prefix, after, limit: 1000 } };
      const page: Schemas["DocumentsOut"] = await read(this.api.GET("/documents", { params }));
      yield* page.documents;
      after = page.next_after ?? undefined;
    } while (after !== undefined);
  }

  /** What to upload, move, change and delete, so that the documents of a folder are in step with it. */
  compareDocuments(manifest: Schemas["ManifestIn"]): Promise<Schemas["StepsOut"]> {
    const params = { query: { collection: this.collection } };
    return read(this.api.POST("/documents:compare", { body: manifest, params }));
  }

  /** Change the source, the folder or the readers of a document; readers null: everyone. */
  changeDocument(source: string, changes: Schemas["DocumentChangeIn"]): Promise<Schemas["ChangedDocument"]> {
    const params = { path: { source }, query: { collection: this.collection } };
    return read(this.api.PATCH("/documents/{source}", { body: changes, params }));
  }

  /** Remove a document with its passages. */
  async deleteDocument(source: string): Promise<void> {
    const params = { path: { source }, query: { collection: this.collection } };
    await read(this.api.DELETE("/documents/{source}", { params }));
  }

  /** Remove a collection and everything in it. */
  async deleteCollection(name: string): Promise<void> {
    await read(this.api.DELETE("/collections/{name}", { params: { path: { name } } }));
  }
}

function citation(cited: Cited): string | number {
  if (typeof cited !== "object") return cited;
  return "sentence_id" in cited ? cited.sentence_id : cited.passage_id;
}

/** A variable of the environment; undefined if it is empty, and in browsers, which have none. */
function variable(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name]?.trim() || undefined;
}

/** The address with `http://`, which may be left out. A path of its own, as behind a proxy, stays. */
function address(url: string): string {
  return /^([a-z][a-z0-9+.-]*:\/\/|\/)/i.test(url) ? url : `http://${url}`;
}

function once(key?: string): { "idempotency-key": string } {
  return { "idempotency-key": key ?? crypto.randomUUID() };
}

/** Whether it is the connection that failed or took too long, and not whoever reads. */
function broke(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof DOMException && error.name === "TimeoutError");
}

interface Outcome {
  data?: unknown;
  error?: unknown;
  response: Response;
}

/** What a call of `Engram.api` was answered with, or what went wrong as an `EngramError`. */
export async function read<T>(request: Promise<Outcome>): Promise<T> {
  let outcome: Outcome;
  try {
    outcome = await request;
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : String(cause);
    throw new EngramError(0, "urn:engram:problem:unreachable", "Out of reach", detail, [], { cause });
  }
  if (outcome.response.ok) return outcome.data as T;
  const problem = (outcome.error ?? {}) as Partial<Schemas["Problem"]>;
  throw new EngramError(
    outcome.response.status,
    problem.type ?? "about:blank",
    problem.title ?? `HTTP ${outcome.response.status}`,
    problem.detail ?? "",
    problem.errors ?? [],
  );
}
