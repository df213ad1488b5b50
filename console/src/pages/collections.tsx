/** Collections, what is in them, and passages on their way in. */

import { useState } from "preact/hooks";

import { Await, Choice, counted, Dialog, Empty, Head, moment, Panel, Problem } from "../parts/basic";
import { Documents, nameReaders } from "../parts/documents";
import { Ingest } from "../parts/ingest";
import { Jobs } from "../parts/jobs";
import { read, type Schemas } from "../service";
import { useLoaded, useShared } from "../state";
import { Table } from "../parts/table";

export function Collections() {
  const { engram, collection, may, refresh } = useShared();
  const [turn, setTurn] = useState(0);
  const changed = () => {
    setTurn((one) => one + 1);
    void refresh();
  };
  const found = useLoaded(
    () => read<Schemas["CollectionOut"]>(engram.api.GET("/collections/{name}", { params: { path: { name: collection } } })),
    [collection, turn],
  );
  return (
    <>
      <Head title="Collections">The passages of the chosen collection, and files on their way in.</Head>
      <div class="stack">
        <div class="half">
          {may("read") && <Await of={found}>{(data) => <Collection of={data} changed={changed} />}</Await>}
          {may("ingest") && <Ingest onSent={changed} />}
        </div>
        {may("read") && <Jobs turn={turn} onDone={changed} />}
        {may("read") && <Documents turn={turn} onDeleted={changed} />}
        {may("read") && <Passages turn={turn} />}
      </div>
    </>
  );
}

function Collection({ of, changed }: { of: Schemas["CollectionOut"]; changed: () => void }) {
  const { engram, may, choose } = useShared();
  const [error, setError] = useState<unknown>();
  const [asking, setAsking] = useState(false);
  const serve = async (serving: "live" | "shadow") => {
    try {
      await read(engram.api.PATCH("/collections/{name}", { params: { path: { name: of.name } }, body: { serving } }));
      changed();
    } catch (failed) {
      setError(failed);
    }
  };
  const remove = async () => {
    try {
      await engram.deleteCollection(of.name);
      choose("");
      changed();
      setAsking(false);
    } catch (failed) {
      setError(failed);
    }
  };
  return (
    <Panel title={of.name} note={of.past ? `a copy of ${of.past.of} as of ${moment(of.past.until)}` : undefined}>
      <div class="stack close">
        <dl class="facts">
          <dt>Contents</dt>
          <dd class="figure">
            {counted(of.passage_count, "passage")}, {counted(of.sentence_count, "sentence")}, {counted(of.entity_count, "entity", "entities")}
          </dd>
          <dt>Encoder</dt>
          <dd>
            {of.encoder.model} <span class="quiet code">{of.encoder.fingerprint.slice(0, 12)}</span>
          </dd>
          <dt>Passage keys</dt>
          <dd>{of.key_building}</dd>
          {of.experiment && (
            <>
              <dt>Arms</dt>
              <dd>{of.experiment.arms.map((arm) => `${arm.name} ${arm.percent} %`).join(", ")}</dd>
            </>
          )}
          {of.exploration && (
            <>
              <dt>Exploration</dt>
              <dd>{(of.exploration.share * 100).toFixed(1)} % of queries</dd>
            </>
          )}
        </dl>
        {may("admin") ? (
          <div class="row">
            <Choice
              legend="Serving"
              term="shadow"
              name="serving"
              value={of.serving}
              options={[["live", "Live"], ["shadow", "Shadow"]]}
              onChoose={(serving) => void serve(serving)}
            />
            <button type="button" class="small danger" onClick={() => setAsking(true)}>
              Delete
            </button>
          </div>
        ) : (
          <p>
            Serving <span class="badge">{of.serving}</span>
          </p>
        )}
        <Problem error={error} />
      </div>
      {asking && <Confirm name={of.name} remove={() => void remove()} onClose={() => setAsking(false)} />}
    </Panel>
  );
}

function Confirm({ name, remove, onClose }: { name: string; remove: () => void; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  return (
    <Dialog title={`Delete ${name}`} onClose={onClose}>
      <p>Its passages, what it learned and the verdicts behind it are deleted for good.</p>
      <label class="field">
        <span>Type its name</span>
        <input value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
      </label>
      <div>
        <button type="button" class="danger" disabled={typed !== name} onClick={remove}>
          Delete {name}
        </button>
      </div>
    </Dialog>
  );
}

function Passages({ turn }: { turn: number }) {
  const { engram, collection, may } = useShared();
  const [after, setAfter] = useState<string | undefined>();
  const page = useLoaded(() => {
    const params = { path: { name: collection }, query: { after, limit: 25 } };
    return read<Schemas["PassagesOut"]>(engram.api.GET("/collections/{name}/passages", { params }));
  }, [collection, after, turn]);
  return (
    <Await of={page}>
      {(data) =>
        data.passages.length === 0 ? (
          <Empty title="No passages" />
        ) : (
          <Panel title="Passages" note="In the order of their ids">
            <Table
              rows={data.passages}
              by={(one) => one.id}
              columns={[
                { title: "Id", class: "code", cell: (one) => one.id },
                {
                  title: "Text",
                  cell: (one) => (
                    <>
                      {one.title && <strong>{one.title} </strong>}
                      <span class="quiet clamp">{one.text}</span>
                    </>
                  ),
                },
                may("ingest") && { title: "Read by", cell: nameReaders },
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
          </Panel>
        )
      }
    </Await>
  );
}
