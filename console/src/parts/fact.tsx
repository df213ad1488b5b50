/** One fact: who says it, what moved what is believed of it, and one's own word on it. */

import { useState } from "preact/hooks";

import { read, type Schemas } from "../service";
import { useLoaded, useShared } from "../state";
import { Await, Bar, counted, Dialog, figure, moment, Problem, sayPeriod } from "./basic";
import type { Fact } from "./neighbourhood";
import { SourceLine, sourcePath } from "./source";
import { Table } from "./table";
import { Term } from "./term";

export const during = (fact: Fact): string => sayPeriod(fact.valid_from, fact.held_until ?? fact.valid_to);

export function FactDialog({ id, onClose, onSaid }: { id: number; onClose: () => void; onSaid: () => void }) {
  const { engram, collection, may } = useShared();
  const [error, setError] = useState<unknown>();
  const fact = useLoaded(() => {
    const params = { path: { fact_id: id }, query: { collection } };
    return read<Schemas["FactDetail"]>(engram.api.GET("/facts/{fact_id}", { params }));
  }, [id]);
  const say = async (action: "confirm" | "contradict") => {
    setError(undefined);
    try {
      const params = { header: { "idempotency-key": crypto.randomUUID() } };
      await read(engram.api.POST("/facts/revise", { params, body: { collection, revisions: [{ action, fact_id: id }] } }));
      fact.again();
      onSaid();
    } catch (failed) {
      setError(failed);
    }
  };
  return (
    <Dialog title="A fact" onClose={onClose}>
      <Await of={fact}>
        {(data) => (
          <div class="stack">
            <p class="lead">
              <strong>{data.subject.name}</strong> {data.predicate} <strong>{data.object}</strong> <span class="quiet">{during(data)}</span>
            </p>
            <dl class="bars">
              <dt>
                <Term name="belief">Belief</Term>
              </dt>
              <dd>
                <Bar value={data.belief} tone={data.doubted ? "bad" : "good"} />
              </dd>
              <dd class="number">
                {figure(data.belief)} {data.doubted && <span class="badge bad">doubted</span>}
              </dd>
              <dt>Perplexity</dt>
              <dd>
                <Bar value={data.perplexity} tone="warm" />
              </dd>
              <dd class="number">{figure(data.perplexity)}</dd>
            </dl>
            {data.closed_at && (
              <p class="note">
                Closed {moment(data.closed_at)}
                {data.closed_reason && `: ${data.closed_reason}`}
              </p>
            )}
            <div>
              <h3>{counted(data.sources.length, "source")}</h3>
              <ul class="stack close">
                {data.sources.map((one) => (
                  <li key={`${one.stated_by} ${one.text} ${one.learned_at}`}>
                    <mark>{one.text}</mark> <span class="quiet">{one.source ? sourcePath(one.source) : one.stated_by}</span>
                    {one.source && <SourceLine source={one.source} />}
                  </li>
                ))}
              </ul>
            </div>
            <div>
              <h3>History</h3>
              <Table
                rows={data.history}
                by={(one) => data.history.indexOf(one)}
                columns={[
                  { title: "When", class: "when", cell: (one) => moment(one.at) },
                  {
                    title: "By",
                    cell: (one) => (
                      <>
                        {one.by ?? one.passage_id ?? "a passage"} <span class={`badge ${one.supports ? "good" : "bad"}`}>{one.kind}</span>
                        {one.of_fact !== data.fact_id && <span class="quiet"> of fact {one.of_fact}, which bears on it</span>}
                      </>
                    ),
                  },
                  {
                    title: "Belief then",
                    class: "measure",
                    cell: (one) => (
                      <>
                        <Bar value={one.belief} tone={one.belief < 0.5 ? "bad" : "good"} /> <span class="figure">{figure(one.belief)}</span>
                      </>
                    ),
                  },
                ]}
              />
            </div>
            <Problem error={error} />
            {may("judge") && (
              <div class="row">
                <button type="button" onClick={() => void say("confirm")}>
                  Confirm
                </button>
                <button type="button" class="danger" onClick={() => void say("contradict")}>
                  Contradict
                </button>
              </div>
            )}
          </div>
        )}
      </Await>
    </Dialog>
  );
}
