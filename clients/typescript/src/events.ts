/** Server-sent events of a response's body. */

/** The kind and the data of each event, as they come; comments are left out. A stream that is cut off just ends. */
export async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<[string, string]> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let held = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      held += decoder.decode(value, { stream: true });
      const blocks = held.split("\n\n");
      held = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parsed(block);
        if (event !== undefined) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined); // one that broke cannot be cancelled, and need not be
  }
}

function parsed(block: string): [string, string] | undefined {
  const fields = new Map(block.split("\n").map((line) => [line.split(":", 1)[0], line.slice(line.indexOf(":") + 1).trimStart()]));
  const kind = fields.get("event");
  const data = fields.get("data");
  return kind === undefined || data === undefined ? undefined : [kind, data];
}
