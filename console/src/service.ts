/** The service as this page speaks to it: by a login, or by the key that was given, kept for as long as the tab is open. */

import { Engram, EngramError, read, type Schemas } from "engram-client";

export { EngramError, read };
export type { Engram, Schemas };

/** The service's address: that of this page. A proxy may show both below a path. */
export const SERVICE = new URL(".", location.href).href.replace(/\/$/, "");

const KEY = "engram.key";

export const key = {
  get: () => sessionStorage.getItem(KEY) ?? undefined,
  set: (value: string) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

export function connect(collection: string): Engram {
  return new Engram({ url: SERVICE, key: key.get(), collection, retries: 1, fetch: asked });
}

/** Told where the key or the login does not count any more. */
export const REFUSED = "engram-refused";
/** Sent with each request: beside it the service takes the cookie of a login, and no foreign page can send it. */
export const PAGE = { "x-engram-page": "1" };

async function asked(input: RequestInfo | URL): Promise<Response> {
  const request = new Request(input);
  for (const [name, value] of Object.entries(PAGE)) request.headers.set(name, value);
  const answer = await fetch(request);
  if (answer.status === 401) dispatchEvent(new Event(REFUSED));
  return answer;
}

/** What went wrong, in a line. */
export function problem(error: unknown): string {
  if (error instanceof EngramError && error.status === 0) return "The service cannot be reached. It may be starting anew, or have stopped.";
  if (error instanceof EngramError) return error.detail || error.title;
  return error instanceof Error ? error.message : String(error);
}

/** A text that is no part of the API's description, such as `metrics`; empty where it is not shown. */
export async function plain(path: string): Promise<string> {
  const held = key.get();
  const answer = await fetch(path, { headers: held === undefined ? PAGE : { authorization: `Bearer ${held}` } }).catch(() => null);
  return answer?.ok ? answer.text() : "";
}
