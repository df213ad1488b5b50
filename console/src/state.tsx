/** What every page knows: whose key it is, what it may, and which collection is looked at. */

import { createContext } from "preact";
import { useCallback, useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";

import { connect, key, read, type Schemas } from "./service";
import type { Engram } from "engram-client";

export type Scope = "query" | "read" | "ingest" | "judge" | "judge-as" | "audit" | "moderate" | "vouch" | "llm" | "act-as" | "admin";

/** Where the browser keeps the collection that was looked at last. */
export const CHOSEN = "engram.collection";

export interface Shared {
  engram: Engram;
  me: Schemas["WhoOut"];
  ready: Schemas["ReadinessOut"] | null;
  collection: string;
  collections: string[];
  choose: (collection: string) => void;
  refresh: () => Promise<void>;
  /** Whether there is a language model that the key may use. */
  model: boolean;
  /** Whether the key allows this on the collection, or on all of them. */
  may: (scope: Scope, everywhere?: boolean) => boolean;
  /** Whether a wing, an optional feature, is on. */
  has: (wing: string) => boolean;
}

const context = createContext<Shared | null>(null);
export const SharedState = context.Provider;

export function useShared(): Shared {
  const shared = useContext(context);
  if (shared === null) throw new Error("there is no state around this page");
  return shared;
}

export function allowed(me: Schemas["WhoOut"], scope: Scope, collection: string | null): boolean {
  const has = (name: string) => {
    const scopes = me.scopes[name] ?? [];
    return scopes.includes(scope) || scopes.includes("admin");
  };
  return has("*") || (collection !== null && has(collection));
}

/** The collection that comes with Engram. */
export const SAMPLE = "sample";

/** Names of the collections that the key shows, the sample collection first. */
export async function names(me: Schemas["WhoOut"]): Promise<string[]> {
  const granted = Object.keys(me.scopes).filter((name) => name !== "*");
  if (!Object.keys(me.scopes).some((name) => allowed(me, "read", name))) return sampleFirst(granted);
  const found: string[] = [];
  let after: string | undefined;
  do {
    const page = await read<Schemas["CollectionsOut"]>(
      connect("default").api.GET("/collections", { params: { query: { after, limit: 200 } } }),
    );
    found.push(...page.collections.map((one) => one.name));
    after = page.next_after ?? undefined;
  } while (after !== undefined && found.length < 2_000);
  return sampleFirst([...new Set([...found, ...granted])]);
}

function sampleFirst(collections: readonly string[]): string[] {
  return [...collections].sort((one, other) => Number(other === SAMPLE) - Number(one === SAMPLE) || (one < other ? -1 : 1));
}

export interface Loaded<T> {
  data: T | undefined;
  error: unknown;
  loading: boolean;
  again: () => void;
}

/** What `load` comes to, anew whenever `by` changes; what came too late is dropped. */
export function useLoaded<T>(load: () => Promise<T>, by: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: unknown; loading: boolean }>({ loading: true });
  const [turn, setTurn] = useState(0);
  const latest = useRef(0);
  useEffect(() => {
    const mine = ++latest.current;
    setState((before) => ({ ...before, loading: true, error: undefined }));
    load().then(
      (data) => mine === latest.current && setState({ data, loading: false }),
      (error: unknown) => mine === latest.current && setState({ error, loading: false }),
    );
    return () => void (latest.current += 1);
  }, [...by, turn]);
  const again = useCallback(() => setTurn((one) => one + 1), []);
  return { data: state.data, error: state.error, loading: state.loading, again };
}

/** The part of the address after `#/`: a page's name, what it is about, and settings. */
export interface Place {
  page: string;
  about: string;
  settings: URLSearchParams;
}

export function here(): Place {
  const hash = location.hash.replace(/^#\/?/, "");
  const at = hash.includes("?") ? hash.indexOf("?") : hash.length;
  const [path, search] = [hash.slice(0, at), hash.slice(at + 1)];
  const [page = "", ...about] = path.split("/");
  return { page, about: decodeURIComponent(about.join("/")), settings: new URLSearchParams(search) };
}

export function address(page: string, about = "", settings: Record<string, string | undefined> = {}): string {
  const present = Object.entries(settings).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const search = new URLSearchParams(present).toString();
  return `#/${page}${about ? `/${encodeURIComponent(about)}` : ""}${search ? `?${search}` : ""}`;
}

export function usePlace(): Place {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const moved = () => setHash(location.hash);
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return useMemo(here, [hash]);
}

export { key };
