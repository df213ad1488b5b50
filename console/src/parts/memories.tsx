/** Memories: how sure they became over time, which were moved last, and what made each of them so. */

import { useState } from "preact/hooks";

import { read, type Schemas } from "../service";
import { address, useLoaded, useShared } from "../state";
import { Await, Bar, counted, Dialog, Empty, figure, moment, Panel, Problem } from "./basic";
import { CHANNELS } from "./verdict_effect";
import { Line } from "./chart";
import { Table } from "./table";

export function MemoriesPart() {
  const { engram, collection, has, may } = useShared();
  const [until, setUntil] = useState("");
  const [open, setOpen] = useState<number | null>(null);
  const moment_ = until ? new Date(until).toISOString() : undefined;
  const learned = useLoaded(() => {
    const params = { path: { name: collection }, query: { until: moment_, limit: 200 } };
    return read<Schemas["LearnedOut"]>(engram.api.GET("/collections/{name}/learned", { params }));
  }, [collection, moment_]);
  return (
    <div class="stack">
      <div class="row">
        <label class="field inline">
          <span>As of</span>
          <input type="datetime-local" value={until} onInput={(event) => setUntil(event.currentTarget.value)} />
        </label>
        {until && (
          <button type="button" class="small" onClick={() => setUntil("")}>
            Now
          </button>
        )}
        {moment_ && has("history") && may("admin") && <Replay until={moment_} />}
      </div>
      <Await of={learned}>
        {(data) =>
          data.verdicts === 0 ? (
            <Empty title={until ? "Nothing had been learned by then" : "Nothing was learned yet"}>
              <a href="#/ask">Ask a question</a>, then press a thumb or judge sentences.
            </Empty>
          ) : (
            <>
              <Course learned={data} />
              <Panel title={until ? "Memories as they were" : "Memories"} note="The latest change first">
                <Table
                  rows={data.memories}
                  by={(one) => `${one.sentence_id} ${one.channel}`}
                  columns={[
                    {
                      title: "Sentence",
                      cell: (one) => (
                        <>
                          <button type="button" class="plain text" onClick={() => setOpen(one.sentence_id)}>
                            {one.text}
                          </button>
                          <span class="quiet">
                            {one.title ?? one.passage_id}
                            {one.channel === "time" && ", its time"}
                          </span>
                        </>
                      ),
                    },
                    {
                      title: "Perplexity",
                      term: "perplexity",
                      class: "measure",
                      cell: (one) => (
                        <>
                          <Bar value={one.perplexity} tone="warm" /> <span class="figure">{figure(one.perplexity)}</span>
                        </>
                      ),
                    },
                    { title: "Verdicts", class: "number", cell: (one) => one.update_count },
                    {
                      title: "Latest verdict",
                      cell: (one) => (
                        <>
                          <a href={address("learned", String(one.feedback_id))}>Verdict {one.feedback_id}</a>
                          <br />
          <span class="quiet when">{moment(one.moved_at)}</span>
                        </>
                      ),
                    },
                  ]}
                />
              </Panel>
            </>
          )
        }
      </Await>
      {open !== null && <Memory sentence={open} onClose={() => setOpen(null)} />}
    </div>
  );
}

function Course({ learned }: { learned: Schemas["LearnedOut"] }) {
  const { course } = learned;
  const most = Math.max(...course.map((one) => one.states), 1);
  const sure = course.filter((one) => one.perplexity !== null).map((one) => ({ at: Date.parse(one.at), value: one.perplexity ?? 1 }));
  return (
    <div class="half">
      <Panel title="How unsure they are" note={learned.perplexity === null ? undefined : <>mean perplexity <strong>{figure(learned.perplexity)}</strong></>}>
        <Line points={sure} label="Mean perplexity of the memories" most={1} tone="warm" format={(value) => figure(value)} />
      </Panel>
      <Panel title="How many there are" note={`${counted(learned.states, "memory", "memories")} by ${counted(learned.verdicts, "verdict")}`}>
        <Line points={course.map((one) => ({ at: Date.parse(one.at), value: one.states }))} label="Memories that verdicts moved" most={most} tone="accent" format={(value) => String(Math.round(value))} />
      </Panel>
    </div>
  );
}

/** Has a job make a collection of what had been learned then. */
function Replay({ until }: { until: string }) {
  const { engram, collection, refresh } = useShared();
  const [said, setSaid] = useState("");
  const [error, setError] = useState<unknown>();
  const replay = async () => {
    setError(undefined);
    try {
      const params = { path: { name: collection }, header: { "idempotency-key": crypto.randomUUID() } };
      const job = await read<Schemas["AcceptedJob"]>(engram.api.POST("/collections/{name}/replay", { params, body: { until } }));
      setSaid("Being made …");
      const done = await engram.wait(job);
      setSaid(`Made: ${done.replay?.into ?? ""}`);
      await refresh();
    } catch (failed) {
      setError(failed);
    }
  };
  return (
    <>
      <button type="button" class="small" onClick={() => void replay()}>
        Make a collection of that moment
      </button>
      <span role="status">{said}</span>
      <Problem error={error} />
    </>
  );
}

function Memory({ sentence, onClose }: { sentence: number; onClose: () => void }) {
  const { engram } = useShared();
  const memory = useLoaded(() => engram.memory(sentence), [sentence]);
  return (
    <Dialog title="A memory" onClose={onClose}>
      <Await of={memory}>
        {(data) => (
          <div class="stack">
            <p>
              <mark>{data.text}</mark> <span class="quiet">{data.title ?? data.passage_id}</span>
            </p>
            <History history={data.history} />
            {data.supports.length > 0 && (
              <div>
                <h3>Questions that it supports</h3>
                <Table
                  rows={data.supports}
                  by={(one) => one.question_id}
                  columns={[
                    { title: "Question", cell: (one) => one.question },
                    {
                      title: "Support",
                      class: "measure",
                      cell: (one) => (
                        <>
                          <Bar value={one.support} tone="good" /> <span class="figure">{figure(one.support)}</span>
                        </>
                      ),
                    },
                    { title: "Perplexity", term: "perplexity", class: "number", cell: (one) => figure(one.perplexity) },
                  ]}
                />
              </div>
            )}
          </div>
        )}
      </Await>
    </Dialog>
  );
}

interface Moved {
  event: Schemas["SentenceEventOut"];
  move: Schemas["SentenceEventOut"]["moves"][number];
}

function History({ history }: { history: readonly Schemas["SentenceEventOut"][] }) {
  return (
    <Table<Moved>
      rows={history.flatMap((event) => event.moves.map((move) => ({ event, move })))}
      by={({ event, move }) => `${event.sequence} ${move.channel}`}
      columns={[
        {
          title: "Verdict",
          cell: ({ event, move }) => (
            <>
              <a href={address("learned", String(event.feedback_id))}>{event.feedback_id}</a> of {event.judge}{" "}
              <span class={`badge ${move.target ? "good" : "bad"}`}>{move.target ? "helped" : "did not"}</span>
            </>
          ),
        },
        {
          title: "Memory",
          cell: ({ event, move }) => (
            <>
              {CHANNELS[move.channel]}
              <br />
              <span class="quiet">{event.question}</span>
            </>
          ),
        },
        { title: "Perplexity", term: "perplexity", class: "number", cell: ({ move }) => `${figure(move.perplexity_before)} → ${figure(move.perplexity_after)}` },
        { title: "Likeness to its question", class: "number", cell: ({ move }) => `${figure(move.similarity_before)} → ${figure(move.similarity_after)}` },
      ]}
    />
  );
}
