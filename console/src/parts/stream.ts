/** Server-sent events by `fetch`, which can send a key where `EventSource` cannot. */

import type { Engram } from "engram-client";

import type { Schemas } from "../service";

export type Event =
  | { kind: "round"; id: number; data: Schemas["RoundOut"] }
  | { kind: "end"; id: number; data: Schemas["SessionOut"] };

const PAUSE = 800;

/** The rounds of a session as they come, then its end; a connection that is lost is taken up after the last round. */
export async function* follow(engram: Engram, collection: string, session: string, signal: AbortSignal): AsyncGenerator<Event> {
  let last = 0;
  while (!signal.aborted) {
    try {
      const { response } = await engram.api.GET("/sessions/{session_id}/events", {
        params: { path: { session_id: session }, query: { collection }, header: { "last-event-id": last } },
        parseAs: "stream",
        signal,
      });
      if (!response.ok || response.body === null) throw new Error(`HTTP ${response.status}`);
      for await (const event of events(response.body)) {
        yield event;
        if (event.kind === "end") return;
        last = event.id;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Error && error.message.startsWith("HTTP 4")) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<Event> {
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>).getReader();
  let held = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    held += value;
    const parts = held.split("\n\n");
    held = parts.pop() ?? "";
    for (const part of parts) {
      const said = new Map(part.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)] as const));
      const kind = said.get("event");
      if (kind === "round" || kind === "end") {
        yield { kind, id: Number(said.get("id")), data: JSON.parse(said.get("data") ?? "null") } as Event;
      }
    }
  }
}
