/** The question encoder that verdicts tuned: what serves, what held-out verdicts said of each attempt, and what to do about it. */

import { useState } from "preact/hooks";

import { read, type Schemas } from "../service";
import { useLoaded, useShared } from "../state";
import { Await, Choice, counted, Dialog, Empty, figure, moment, Panel, percent, Problem, signed } from "./basic";
import { Line } from "./chart";
import { Table } from "./table";

type Standing = Schemas["TuningOut"];
type Generation = Schemas["TuningGenerationOut"];

export function TuningPart() {
  const { engram, collection, may } = useShared();
  const [error, setError] = useState<unknown>();
  const [said, setSaid] = useState("");
  const [asked, setAsked] = useState<Generation | null>(null);
  const [before, setBefore] = useState<number | undefined>();
  const standing = useLoaded(() => {
    const params = { path: { name: collection }, query: { before, limit: 50 } };
    return read<Standing>(engram.api.GET("/collections/{name}/tuning", { params }));
  }, [collection, before]);
  const attempt = async (act: () => Promise<string>) => {
    setError(undefined);
    setSaid("");
    try {
      setSaid(await act());
    } catch (failed) {
      setError(failed);
    }
    standing.again();
  };
  const change = (body: Schemas["TuningIn"], done: string) =>
    attempt(async () => {
      await read(engram.api.PUT("/collections/{name}/tuning", { params: { path: { name: collection } }, body }));
      return done;
    });
  const learn = (lender?: string) =>
    attempt(async () => {
      setSaid("Being learned …");
      const params = { path: { name: collection }, query: { begin_with: lender } };
      const job = await read<Schemas["AcceptedJob"]>(engram.api.POST("/collections/{name}/tune", { params }));
      const { result } = await engram.wait(job);
      return sentence(String(result?.["reason"]));
    });
  const serve = (number: number) => change({ serving: number }, number === 0 ? "The encoder serves as it is." : `Generation ${number} serves.`);
  return (
    <div class="stack">
      <Await of={standing}>
        {(data) => (
          <>
            <Panel title={data.serving === 0 ? "The encoder serves as it is" : `Generation ${data.serving} serves`} note="For dense and hybrid search; profile default ranks with the encoder as it is.">
              <div class="stack close">
                <p class="quiet">
                  {counted(data.judged_questions, "judged question")}. {next(data)}
                </p>
                {may("moderate") && <Steering of={data} busy={said.endsWith("…")} learn={learn} change={change} serve={serve} />}
                <Problem error={error} />
                <p role="status">{said}</p>
              </div>
            </Panel>
            {data.generations.length === 0 ? (
              <Empty title="Nothing was learned yet" />
            ) : (
              <>
                <Curve of={data.generations} />
                <Panel title="Generations" note="Questions that an adapter was not learned from decide whether it is used: nDCG@10 with it less without.">
                  <Table
                    rows={data.generations}
                    by={(one) => one.number}
                    columns={[
                      { title: "Generation", heads: true, cell: (one) => <Name of={one} serving={data.serving} /> },
                      { title: "Decision", cell: (one) => sentence(one.reason) },
                      { title: "Learned from", class: "number", cell: (one) => <>{counted(one.question_count, "question")}<br /><span class="quiet">{counted(one.verdict_count, "verdict")}</span></> },
                      { title: "Other questions", class: "number", cell: (one) => <Gain of={one.figures?.others} /> },
                      { title: "Sharing evidence", class: "number", cell: (one) => <Gain of={one.figures?.sharing} /> },
                      { title: "Recalled evidence", class: "number", cell: (one) => <Gain of={one.figures?.recall} /> },
                      { title: "First five kept", class: "number", cell: (one) => (one.figures?.overlap == null ? <span class="quiet">–</span> : percent(one.figures.overlap)) },
                      { title: "Made", cell: (one) => <span class="when">{moment(one.created_at)}</span> },
                      may("moderate") && {
                        title: "Actions",
                        quiet: true,
                        cell: (one) =>
                          one.usable && (
                            <div class="row">
                              {data.enabled && one.number !== data.serving && (
                                <button type="button" class="small" aria-label={`Serve generation ${one.number}`} onClick={() => void serve(one.number)}>
                                  Serve
                                </button>
                              )}
                              <button type="button" class="small danger" aria-label={`Withdraw generation ${one.number}`} onClick={() => setAsked(one)}>
                                Withdraw
                              </button>
                            </div>
                          ),
                      },
                    ]}
                  />
                  <div class="row">
                    {before !== undefined && <button type="button" class="small" onClick={() => setBefore(undefined)}>From the latest</button>}
                    {data.next_before !== null && <button type="button" class="small" onClick={() => setBefore(data.next_before ?? undefined)}>Earlier</button>}
                  </div>
                </Panel>
              </>
            )}
          </>
        )}
      </Await>
      {asked && (
        <Dialog title={`Withdraw generation ${asked.number}`} onClose={() => setAsked(null)}>
          <p>
            Its adapter is removed for good, also from collections that borrowed it. If it serves, the last one before it does. A worker learns
            anew from the verdicts that count.
          </p>
          <div>
            <button
              type="button"
              class="danger"
              onClick={() => {
                setAsked(null);
                void change({ withdraw: asked.number }, `Generation ${asked.number} is withdrawn.`);
              }}
            >
              Withdraw generation {asked.number}
            </button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

interface SteeringProps {
  of: Standing;
  busy: boolean;
  learn: (lender?: string) => Promise<void>;
  change: (body: Schemas["TuningIn"], done: string) => Promise<void>;
  serve: (number: number) => Promise<void>;
}

function Steering({ of, busy, learn, change, serve }: SteeringProps) {
  const { collection, collections } = useShared();
  const [lender, setLender] = useState("");
  const others = collections.filter((name) => name !== collection);
  const idle = busy || !of.tunable || !of.enabled;
  return (
    <div class="row">
      <Choice
        legend="Tuning"
        name="tuning"
        value={of.enabled ? "on" : "off"}
        options={[["on", "On"], ["off", "Off"]]}
        onChoose={(to) => void change({ enabled: to === "on" }, to === "on" ? "Tuning is on." : "Tuning is off: the encoder serves as it is.")}
      />
      <button type="button" class="small" disabled={idle} onClick={() => void learn()}>
        Learn now
      </button>
      {of.serving !== 0 && (
        <button type="button" class="small" onClick={() => void serve(0)}>
          Back to the encoder as it is
        </button>
      )}
      {of.serving === 0 && others.length > 0 && (
        <>
          <label class="field inline">
            <span>Begin with</span>
            <select value={lender} onChange={(event) => setLender(event.currentTarget.value)}>
              <option value="">another collection</option>
              {others.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
          <button type="button" class="small" disabled={idle || lender === ""} onClick={() => void learn(lender)}>
            Try what it learned
          </button>
        </>
      )}
    </div>
  );
}

/** The gain of other questions by how many questions an attempt was learned from. */
function Curve({ of }: { of: readonly Generation[] }) {
  const points = of
    .filter((one) => !one.borrowed && one.figures)
    .map((one) => ({ at: one.question_count, value: one.figures?.others.mean ?? 0 }))
    .sort((one, other) => one.at - other.at);
  if (points.length < 2) return null;
  const values = points.map((point) => point.value);
  return (
    <Panel title="Learning curve" note="Gain of other questions, by how many judged questions an attempt was learned from">
      <Line
        points={points}
        label="Gain of other questions"
        least={Math.min(0, ...values)}
        most={Math.max(0, ...values)}
        tone="accent"
        format={(value) => signed(value, 3)}
        place={(at) => counted(at, "question")}
      />
    </Panel>
  );
}

function Name({ of, serving }: { of: Generation; serving: number }) {
  const [tone, state] =
    of.number === serving ? ["good", "serves"] : of.withdrawn_at !== null ? ["bad", "withdrawn"] : of.accepted ? ["", "earlier"] : ["", "not used"];
  return (
    <>
      {of.number} <span class={`badge ${tone}`}>{state}</span>
      {of.borrowed && <div class="quiet">from {of.lender ?? "another collection"}</div>}
    </>
  );
}

function Gain({ of }: { of: Schemas["GainOut"] | undefined }) {
  if (of === undefined || of.questions === 0) return <span class="quiet">–</span>;
  return (
    <>
      {signed(of.mean, 3)}
      {of.error !== null && ` ± ${figure(of.error, 3)}`}
      <br />
      <span class="quiet">{counted(of.questions, "question")}</span>
    </>
  );
}

/** When the next attempt comes. */
function next({ tunable, enabled, due_at }: Standing): string {
  if (!tunable) return "This encoder cannot be tuned.";
  if (!enabled) return "Tuning is off: nothing is learned, and no generation serves.";
  return `The next attempt comes at ${due_at}.`;
}

const sentence = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);
