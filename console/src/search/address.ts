/** The address of an answer: whoever opens it sees the answer to the same question. */

export type Filter = Record<string, unknown>;

export interface Search {
  question: string;
  /** Null: the one that was searched last, or the first. */
  collection: string | null;
  filter: Filter;
}

export function searchHere(): Search {
  const settings = new URLSearchParams(location.search);
  return {
    question: settings.get("q") ?? "",
    collection: settings.get("c"),
    filter: parseFilter(settings.get("filter")),
  };
}

export function addressOf({ question, collection, filter }: Search): string {
  const settings = new URLSearchParams({ q: question });
  if (collection !== null) settings.set("c", collection);
  if (Object.keys(filter).length > 0) settings.set("filter", JSON.stringify(filter));
  return `${location.pathname}?${settings}`;
}

/** The filter of an address; an address that was cut off has none. */
function parseFilter(text: string | null): Filter {
  try {
    const filter: unknown = JSON.parse(text ?? "{}");
    return typeof filter === "object" && filter !== null && !Array.isArray(filter) ? (filter as Filter) : {};
  } catch {
    return {};
  }
}
