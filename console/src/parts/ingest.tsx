/** Files that are dropped or chosen: JSON lines are passages, anything else is a document that the service converts. */

import { useRef, useState } from "preact/hooks";

import { problem, read, type Engram, type Schemas } from "../service";
import { useShared } from "../state";
import { counted, Panel, Problem } from "./basic";

const PASSAGES = ".jsonl,.ndjson";
const KINDS = ".txt,.text,.md,.markdown,.html,.htm,.xhtml,.pdf,.docx,.docm,.pptx,.pptm,.xlsx,.xlsm,.odt,.odp,.ods,.rtf,.rst,.org,.csv,.tsv,.eml,.msg,.epub,.ipynb,.vtt,.srt,.json,.jsonl,.ndjson,.yaml,.yml,.xml,.doc,.ppt,.xls,.png,.jpg,.jpeg,.tif,.tiff";

/** What became of the last files: choosing another collection draws the page anew. */
let last: { into: string; lines: readonly string[]; error?: Error } = { into: "", lines: [] };

export function Ingest({ onSent }: { onSent: () => void }) {
  const { engram, collection, choose, may, has } = useShared();
  const [into, setInto] = useState(collection);
  const [over, setOver] = useState(false);
  const [lines, setLines] = useState(last.into === collection ? last.lines : []);
  const [error, setError] = useState<unknown>(last.into === collection ? last.error : undefined);
  const picker = useRef<HTMLInputElement>(null);
  const folderPicker = useRef<HTMLInputElement>(null);
  const send = async (files: readonly File[]) => {
    const done: string[] = [];
    const refused: string[] = [];
    setError(undefined);
    for (const file of files) {
      setLines([...done, `Sending ${file.name} …`]);
      done.push(
        await sent(engram, into, file).catch((failed: unknown) => {
          refused.push(problem(failed));
          return `${file.name} was not taken.`;
        }),
      );
    }
    last = { into, lines: done, error: refused.length > 0 ? new Error(refused.join(" ")) : undefined };
    setLines(last.lines);
    setError(last.error);
    if (refused.length === files.length) return;
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
            <span>Into collection (a new name makes one)</span>
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
            </button>{" "}
            or{" "}
            <button type="button" class="small" onClick={() => folderPicker.current?.click()}>
              a folder
            </button>
          </p>
          <p class="quiet">
            {has("importing") && "Text, Markdown, HTML, PDF, Word, PowerPoint, Excel, CSV, e-mail, notebooks, captions, JSON; "}JSON lines with id and text
          </p>
          <input
            ref={picker}
            type="file"
            class="hidden"
            tabIndex={-1}
            aria-label="Files to send"
            multiple
            accept={has("importing") ? KINDS : PASSAGES}
            onChange={(event) => void send([...(event.currentTarget.files ?? [])])}
          />
          <input
            ref={folderPicker}
            type="file"
            class="hidden"
            tabIndex={-1}
            aria-label="Folder to send"
            {...{ webkitdirectory: true }}
            onChange={(event) => void send([...(event.currentTarget.files ?? [])].filter(isReadable))}
          />
        </div>
        <div role="status">
          {lines.map((line) => (
            <p key={line}>{line}</p>
          ))}
        </div>
        <Problem error={error} />
      </div>
    </Panel>
  );
}

/** Whether a file of a folder is of a kind that can be sent, and not hidden. */
function isReadable(file: File): boolean {
  const kind = /\.[^./]+$/.exec(file.name)?.[0].toLowerCase() ?? "";
  const hidden = file.webkitRelativePath.split("/").some((part) => part.startsWith(".") || part.startsWith("~$"));
  return KINDS.split(",").includes(kind) && !hidden;
}

/** What the document of a file is called: its path below the chosen folder, else its name. */
function source(file: File): string {
  return file.webkitRelativePath.split("/").slice(1).join("/") || file.name;
}

/** Send one file; what became of it, in a line. */
async function sent(engram: Engram, collection: string, file: File): Promise<string> {
  const header = { "idempotency-key": crypto.randomUUID() };
  if (/\.(jsonl|ndjson)$/i.test(file.name)) {
    await read<Schemas["AcceptedJob"]>(
      engram.api.POST("/passages", {
        params: { query: { collection }, header },
        body: (await file.text()) as never, // lines of JSON, which the description shows as one document
        bodySerializer: (body: unknown) => body as string,
        headers: { "content-type": "application/x-ndjson" },
      }),
    );
    return `${file.name} arrived; its job is below.`;
  }
  const taken = await read<Schemas["AcceptedDocument"]>(
    engram.api.POST("/documents", {
      params: { query: { collection, name: source(file) }, header },
      body: (await file.arrayBuffer()) as never, // bytes, which the description shows as text
      bodySerializer: (body: unknown) => body as ArrayBuffer,
      headers: { "content-type": "application/octet-stream" },
    }),
  );
  return [`${taken.source}: ${counted(taken.passages, "passage")}; its job is below.`, ...taken.notes].join(" ");
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
