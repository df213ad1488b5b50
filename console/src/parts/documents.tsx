/** A collection's documents: listed, put into chains of versions, and deleted. */

import { useState } from "preact/hooks";

import { read, type Schemas } from "../service";
import { useLoaded, useShared } from "../state";
import { Await, counted, Dialog, moment, Panel, Problem, sayPeriod } from "./basic";
import { Table } from "./table";

export function Documents({ turn, onDeleted }: { turn: number; onDeleted: () => void }) {
  const { engram, collection, may } = useShared();
  const [after, setAfter] = useState<string | undefined>();
  const [prefix, setPrefix] = useState("");
  const [asking, setAsking] = useState<Schemas["DocumentOut"] | null>(null);
  const [reading, setReading] = useState<string | null>(null);
  const [versioned, setVersioned] = useState<Schemas["DocumentOut"] | null>(null);
  const page = useLoaded(() => {
    const params = { query: { collection, after, prefix, limit: 25 } };
    return read<Schemas["DocumentsOut"]>(engram.api.GET("/documents", { params }));
  }, [collection, after, prefix, turn]);
  return (
    <Await of={page}>
      {(data) =>
        data.documents.length === 0 && !after && !prefix ? null : (
          <Panel title="Documents" note="In the order of their names">
            <form
              class="row"
              role="search"
              onSubmit={(event) => {
                event.preventDefault();
                setAfter(undefined);
                setPrefix(String(new FormData(event.currentTarget).get("prefix") ?? ""));
              }}
            >
              <label>
                Names that begin with <input type="search" name="prefix" defaultValue={prefix} autocomplete="off" />
              </label>
              <button type="submit" class="small">
                Find
              </button>
            </form>
            {data.documents.length === 0 && <p class="quiet">No document has such a name.</p>}
            <Table
              rows={data.documents}
              by={(one) => one.source}
              columns={[
                {
                  title: "Document",
                  heads: true,
                  class: "code",
                  cell: (one) => (
                    <button type="button" class="word" onClick={() => setReading(one.source)}>
                      {one.source}
                    </button>
                  ),
                },
                { title: "Passages", class: "measure", cell: (one) => one.passages.toLocaleString("en") },
                { title: "Pages", class: "measure", cell: (one) => one.pages ?? "" },
                { title: "Imported", class: "when", cell: (one) => moment(one.imported_at) },
                { title: "Valid", class: "when", cell: (one) => sayPeriod(one.valid_from, one.valid_until) },
                { title: "Replaced by", class: "code", cell: (one) => one.replaced_by ?? "" },
                may("ingest") && { title: "Read by", cell: nameReaders },
                { title: "Notes", cell: (one) => one.notes.map((note) => <p class="quiet">{note}</p>) },
                may("ingest") && {
                  title: "Actions",
                  quiet: true,
                  cell: (one) => (
                    <div class="row">
                      <button type="button" class="small" aria-label={`Versions of ${one.source}`} onClick={() => setVersioned(one)}>
                        Versions
                      </button>
                      <button type="button" class="small danger" aria-label={`Delete ${one.source}`} onClick={() => setAsking(one)}>
                        Delete
                      </button>
                    </div>
                  ),
                },
              ]}
            />
            <div class="row">
              {after && (
                <button type="button" class="small" onClick={() => setAfter(undefined)}>
                  From the first
                </button>
              )}
              {data.next_after && (
                <button type="button" class="small" onClick={() => setAfter(data.next_after ?? undefined)}>
                  More
                </button>
              )}
            </div>
            {reading !== null && <Text source={reading} onClose={() => setReading(null)} />}
            {versioned && <Versions of={versioned} onChanged={page.again} onClose={() => setVersioned(null)} />}
            {asking && <Confirm of={asking} onDeleted={onDeleted} onClose={() => setAsking(null)} />}
          </Panel>
        )
      }
    </Await>
  );
}

const MOST_PASSAGES = 200;

/** The text of a document's passages, which the importer numbers after its name. */
function Text({ source, onClose }: { source: string; onClose: () => void }) {
  const { engram, collection } = useShared();
  const page = useLoaded(() => {
    const params = { path: { name: collection }, query: { after: `${source}#`, limit: MOST_PASSAGES } };
    return read<Schemas["PassagesOut"]>(engram.api.GET("/collections/{name}/passages", { params }));
  }, [collection, source]);
  return (
    <Dialog title={source} onClose={onClose}>
      <Await of={page}>
        {(data) => {
          const passages = data.passages
            .filter((one) => one.document === source)
            .sort((one, other) => one.id.localeCompare(other.id, "en", { numeric: true }));
          const link = passages[0]?.source.link;
          return (
            <>
              {link && (
                <p>
                  <a href={link} target="_blank" rel="noreferrer">
                    Open the document
                  </a>
                </p>
              )}
              {passages.map((one) => (
                <p key={one.id}>{one.text}</p>
              ))}
              {passages.length === 0 && <p class="quiet">Its passages have ids of their own; a question finds them.</p>}
              {data.next_after && data.passages.at(-1)?.document === source && <p class="quiet">And more.</p>}
            </>
          );
        }}
      </Await>
    </Dialog>
  );
}

/** Who reads a document or a passage: its lists of readers, or nothing where they are not shown. */
export function nameReaders(of: { readers?: readonly (readonly string[] | null)[] | null }): string {
  return (of.readers ?? []).map((names) => (names === null ? "everyone" : names.join(", ") || "nobody")).join("; ");
}

/** Says which document replaces one, or that none does. */
function Versions({ of, onChanged, onClose }: { of: Schemas["DocumentOut"]; onChanged: () => void; onClose: () => void }) {
  const { engram, collection } = useShared();
  const [successor, setSuccessor] = useState(of.replaced_by ?? "");
  const [error, setError] = useState<unknown>();
  const change = async (replaced_by: string | null) => {
    try {
      const params = { path: { source: of.source }, query: { collection } };
      await read(engram.api.PATCH("/documents/{source}", { params, body: { replaced_by } }));
      onClose();
      onChanged();
    } catch (failed) {
      setError(failed);
    }
  };
  return (
    <Dialog title={`Versions of ${of.source}`} onClose={onClose}>
      {of.replaces.length > 0 && <p>It replaces {of.replaces.join(", ")}.</p>}
      <label>
        Replaced by
        <input value={successor} placeholder="Name of a document" onInput={(event) => setSuccessor(event.currentTarget.value)} />
      </label>
      <Problem error={error} />
      <div class="row">
        <button type="button" disabled={successor.trim() === ""} onClick={() => void change(successor.trim())}>
          Save
        </button>
        <button type="button" onClick={() => void change(null)}>
          Nothing replaces it
        </button>
      </div>
    </Dialog>
  );
}

function Confirm({ of, onDeleted, onClose }: { of: Schemas["DocumentOut"]; onDeleted: () => void; onClose: () => void }) {
  const { engram, collection } = useShared();
  const [error, setError] = useState<unknown>();
  const remove = async () => {
    try {
      await read(
        engram.api.DELETE("/documents/{source}", { params: { path: { source: of.source }, query: { collection } } }),
      );
      onClose();
      onDeleted();
    } catch (failed) {
      setError(failed);
    }
  };
  return (
    <Dialog title={`Delete ${of.source}`} onClose={onClose}>
      <p>
        This deletes its {counted(of.passages, "passage")}. What was learned of it returns if the same text is imported again.
      </p>
      <Problem error={error} />
      <div>
        <button type="button" class="danger" onClick={() => void remove()}>
          Delete document
        </button>
      </div>
    </Dialog>
  );
}
