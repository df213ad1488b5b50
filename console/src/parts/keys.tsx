/** Passage keys: which generation serves, what waits for the next, and the way back. */

import { useState } from "preact/hooks";

import { read, type Schemas } from "../service";
import { useLoaded, useShared } from "../state";
import { Await, counted, Empty, figure, moment, Panel, Problem } from "./basic";
import { Table } from "./table";

const REASONS: Record<string, string> = {
  saturated: "verdicts brought nothing better",
  pending: "enough verdicts waited",
  requested: "it was asked for",
};

export function KeysPart() {
  const { engram, collection, may } = useShared();
  const [error, setError] = useState<unknown>();
  const [said, setSaid] = useState("");
  const params = { path: { name: collection } };
  const keys = useLoaded(async () => {
    const [standing, generations] = await Promise.all([
      read<Schemas["KeysOut"]>(engram.api.GET("/collections/{name}/keys", { params })),
      read<Schemas["GenerationsOut"]>(engram.api.GET("/collections/{name}/generations", { params: { ...params, query: { limit: 100 } } })),
    ]);
    return { standing, generations: generations.generations };
  }, [collection]);
  const act = async (what: () => Promise<string>) => {
    setError(undefined);
    try {
      setSaid(await what());
      keys.again();
    } catch (failed) {
      setError(failed);
    }
  };
  const serve = (generation: number) =>
    act(async () => {
      await read(engram.api.POST("/collections/{name}/rollback", { params, body: { generation } }));
      return generation === 0 ? "Base keys serve." : `Generation ${generation} serves.`;
    });
  const evolve = () =>
    act(async () => {
      const done = await read<Schemas["EvolveOut"]>(engram.api.POST("/collections/{name}/evolve", { params }));
      return done.changed ? `Generation ${done.serving} serves.` : "Nothing waits that moves a key.";
    });
  return (
    <Await of={keys}>
      {({ standing, generations }) => (
        <div class="stack">
          <Panel title={standing.generation === 0 ? "Base keys serve" : `Generation ${standing.generation} serves`}>
            <div class="stack close">
              <p>
                {counted(standing.waiting, "validated verdict")} {standing.waiting === 1 ? "waits" : "wait"} for the next evolution
                {standing.due && <span class="badge warm">due: {standing.due}</span>}
              </p>
              <p class="quiet">
                Best gain {figure(standing.best_gain, 3)}; {counted(standing.stale_batches, "batch", "batches")} in a row brought nothing
                better.
              </p>
              {may("moderate") && (
                <div class="row">
                  <button type="button" disabled={standing.waiting === 0} onClick={() => void evolve()}>
                    Evolve now
                  </button>
                  {standing.generation !== 0 && (
                    <button type="button" onClick={() => void serve(0)}>
                      Back to base keys
                    </button>
                  )}
                  <span role="status">{said}</span>
                </div>
              )}
              <Problem error={error} />
            </div>
          </Panel>
          {generations.length === 0 ? (
            <Empty title="No generation yet">
              Keys evolve by what widened questions that then were answered well: verdicts bring expansions, as POST /expand makes them.
            </Empty>
          ) : (
            <Panel title="Generations" note="The latest first">
              <Table
                rows={generations}
                by={(one) => one.number}
                columns={[
                  { title: "Generation", term: "generation", heads: true, cell: (one) => one.number },
                  { title: "Made", class: "when", cell: (one) => moment(one.created_at) },
                  { title: "Reason", cell: (one) => REASONS[one.reason] ?? one.reason },
                  { title: "Verdicts", class: "number", cell: (one) => one.events },
                  { title: "Passages", class: "number", cell: (one) => one.passages },
                  {
                    title: "State",
                    cell: (one) =>
                      one.number === standing.generation ? (
                        <span class="badge good">serves</span>
                      ) : may("moderate") ? (
                        <button type="button" class="small" onClick={() => void serve(one.number)}>
                          Serve generation {one.number}
                        </button>
                      ) : one.active ? (
                        "counts"
                      ) : (
                        "rolled back"
                      ),
                  },
                ]}
              />
            </Panel>
          )}
        </div>
      )}
    </Await>
  );
}
