/** Passages from files: dropped or chosen, sent as they are, and their job watched. */

import { useRef, useState } from "preact/hooks";

import { read, type Schemas } from "../service";
import { useShared } from "../state";
import { counted, Panel, Problem } from "./basic";

const MOST = 200_000;
/** Characters of a text file that becomes one passage; larger ones are split at empty lines. */

export function Ingest({ onSent }: { onSent: () => void }) {
  const { engram, collection, choose, may } = useShared();
  const [into, setInto] = useState(collection);
  const [over, setOver] = useState(false);
  const [said, setSaid] = useState("");
  const [error, setError] = useState<unknown>();
  const picker = useRef<HTMLInputElement>(null);
  const send = async (files: readonly File[]) => {
    setError(undefined);
    for (const file of files) {
      try {
        setSaid(`Sending ${file.name} …`);
        const content = await lines(file);
        const params = { query: { collection: into }, header: { "idempotency-key": crypto.randomUUID() } };
        await read<Schemas["JobAccepted"]>(
          engram.api.POST("/passages", {
            params,
            body: content as never, // lines of JSON, which the description shows as one document
            bodySerializer: (body: unknown) => body as string,
            headers: { "content-type": "application/x-ndjson" },
          }),
        );
        setSaid(`${file.name} arrived; its job is below.`);
      } catch (failed) {
        setSaid("");
        setError(failed);
        return;
      }
    }
    onSent();
    if (into !== collection) choose(into);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void send([...(event.dataTransfer?.files ?? [])]);
  };
  return (
    <Panel title="Send passages">
      <div class="stack close">
        {may("ingest", true) && (
          <label class="field">
            <span>Into collection; one that is not there yet is made</span>
            <input value={into} pattern="[A-Za-z0-9_.\-]+" onInput={(event) => setInto(event.currentTarget.value)} />
          </label>
        )}
        <div
          class={`drop ${over ? "over" : ""}`}
          onDragOver={(event) => {
            event.preventDefault();
            setOver(true);
          }}
          onDragLeave={() => setOver(false)}
          onDrop={drop}
        >
          <p>
            Drop files here, or{" "}
            <button type="button" class="small" onClick={() => picker.current?.click()}>
              choose files
            </button>
          </p>
          <p class="quiet">JSON lines with id and text, or plain text and Markdown</p>
          <input
            ref={picker}
            type="file"
            class="hidden"
            tabIndex={-1}
            aria-label="Files of passages"
            multiple
            accept=".jsonl,.ndjson,.json,.txt,.md"
            onChange={(event) => void send([...(event.currentTarget.files ?? [])])}
          />
        </div>
        <p role="status">{said}</p>
        <Problem error={error} />
      </div>
    </Panel>
  );
}

/** The file as JSON lines, as `POST /passages` takes them. */
async function lines(file: File): Promise<string> {
  const text = await file.text();
  if (/\.(jsonl|ndjson)$/i.test(file.name)) return text;
  if (/\.json$/i.test(file.name)) {
    const given: unknown = JSON.parse(text);
    const passages = Array.isArray(given) ? given : ((given as { passages?: unknown[] }).passages ?? [given]);
    return passages.map((one) => JSON.stringify(one)).join("\n");
  }
  const name = file.name.replace(/\.\w+$/, "");
  const parts = text.length <= MOST ? [text.trim()] : text.split(/\n\s*\n/).map((part) => part.trim());
  const kept = parts.filter((part) => part !== "");
  if (kept.length === 0) throw new Error(`${file.name} is empty.`);
  return kept.map((part, at) => JSON.stringify({ id: kept.length > 1 ? `${name}-${at + 1}` : name, title: name, text: part })).join("\n");
}

export function progress(job: Schemas["JobOut"]): string {
  const done = job.created + job.updated + job.unchanged + job.rejected;
  if (job.kind !== "ingest") return done ? counted(done, "step") : "";
  const parts = [
    job.created && `${job.created.toLocaleString("en")} new`,
    job.updated && `${job.updated.toLocaleString("en")} changed`,
    job.unchanged && `${job.unchanged.toLocaleString("en")} as before`,
    job.rejected && `${job.rejected.toLocaleString("en")} rejected`,
  ];
  return parts.filter(Boolean).join(", ");
}
