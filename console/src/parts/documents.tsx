/** A collection's documents: listed, put into chains of versions, and deleted. */

import { useState } from "preact/hooks";

import { read, type Schemas } from "../service";
import { useLoaded, useShared } from "../state";
import { Await, counted, Dialog, moment, Panel, Problem } from "./basic";
import { Table } from "./table";

export function Documents({ turn, onDeleted }: { turn: number; onDeleted: () => void }) {
  const { engram, collection, may } = useShared();
  const [after, setAfter] = useState<string | undefined>();
  const [asking, setAsking] = useState<Schemas["DocumentOut"] | null>(null);
  const [versioned, setVersioned] = useState<Schemas["DocumentOut"] | null>(null);
  const page = useLoaded(() => {
    const params = { query: { collection, after, limit: 25 } };
    return read<Schemas["DocumentsOut"]>(engram.api.GET("/documents", { params }));
  }, [collection, after, turn]);
  return (
    <Await of={page}>
      {(data) =>
        data.documents.length === 0 && !after ? null : (
          <Panel title="Documents" note="In the order of their names">
            <Table
              rows={data.documents}
              by={(one) => one.source}
              columns={[
                { title: "Document", heads: true, class: "code", cell: (one) => one.source },
                { title: "Passages", class: "measure", cell: (one) => one.passages.toLocaleString("en") },
                { title: "Pages", class: "measure", cell: (one) => one.pages ?? "" },
                { title: "Imported", class: "when", cell: (one) => moment(one.imported_at) },
                { title: "Valid from", class: "when", cell: (one) => one.valid_from ?? "" },
                { title: "Replaced by", class: "code", cell: (one) => one.replaced_by ?? "" },
                may("ingest") && { title: "Read by", cell: (one) => (one.readers ?? []).map(nameReaders).join("; ") },
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
            {versioned && <Versions of={versioned} onChanged={page.again} onClose={() => setVersioned(null)} />}
            {asking && <Confirm of={asking} onDeleted={onDeleted} onClose={() => setAsking(null)} />}
          </Panel>
        )
      }
    </Await>
  );
}

function nameReaders(readers: readonly string[] | null): string {
  return readers === null ? "everyone" : readers.join(", ") || "nobody";
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
      <p>Its {counted(of.passages, "passage")} and what was learned of them are deleted for good.</p>
      <Problem error={error} />
      <div>
        <button type="button" class="danger" onClick={() => void remove()}>
          Delete document
        </button>
      </div>
    </Dialog>
  );
}
