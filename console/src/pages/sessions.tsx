/** Questions that take several rounds: each round as it comes, the pool of evidence, and what it cost. */

import { useEffect, useState } from "preact/hooks";

import { Await, Bar, Choice, counted, Empty, figure, Head, moment, Panel, percent, Problem, Waiting } from "../parts/basic";
import { Gauge } from "../parts/gauge";
import { EngramError, read, type Schemas } from "../service";
import { address, useLoaded, usePlace, useShared } from "../state";
import { Table } from "../parts/table";

type Session = Schemas["SessionOut"];
type Round = Schemas["RoundOut"];

export function Sessions() {
  const { about } = usePlace();
  return (
    <>
      <Head title="Sessions">A question that one retrieval may not answer goes through rounds until it is covered or a budget is spent.</Head>
      <div class="stack">
        <Start />
        {about ? (
          <Follow key={about} id={about} />
        ) : (
          <Latest />
        )}
      </div>
    </>
  );
}

const LISTED = 30;

/** The latest, as far as the key shows them: one's own, or with `audit` everybody's. */
function Latest() {
  const { engram, collection } = useShared();
  const sessions = useLoaded(() => {
    const params = { query: { collection, limit: LISTED } };
    return read<Schemas["SessionsOut"]>(engram.api.GET("/sessions", { params }));
  }, [collection]);
  return (
    <Await of={sessions}>
      {(data) =>
        data.sessions.length === 0 ? (
          <Empty title="No session yet">Its rounds show here as they come.</Empty>
        ) : (
          <Panel title="Sessions" note="The latest first">
            <Table
              rows={data.sessions}
              by={(one) => one.session_id}
              columns={[
                { title: "Question", heads: true, cell: (one) => <a href={address("sessions", one.session_id)}>{one.question}</a> },
                { title: "Planner", cell: (one) => one.planner },
                { title: "Rounds", class: "number", cell: (one) => one.rounds },
                { title: "State", cell: (one) => <Standing of={one} /> },
                { title: "Begun", class: "when", cell: (one) => moment(one.created_at) },
              ]}
            />
          </Panel>
        )
      }
    </Await>
  );
}

type Planner = NonNullable<Schemas["SessionIn"]["planner"]>;

function Start() {
  const { engram, collection, model } = useShared();
  const [question, setQuestion] = useState("");
  const [planner, setPlanner] = useState<Planner>("auto");
  const [rounds, setRounds] = useState(3);
  const [error, setError] = useState<unknown>();
  const planners: readonly (readonly [Planner, string])[] = model
    ? [["auto", "Auto"], ["pool", "Pool"], ["socratic", "Socratic"], ["tree", "Tree"]]
    : [["auto", "Auto"], ["pool", "Pool"]];
  const start = async (event: Event) => {
    event.preventDefault();
    setError(undefined);
    try {
      const body = { collection, question, planner, budget: { rounds } };
      const params = { header: { "idempotency-key": crypto.randomUUID() } };
      const begun = await read<Schemas["SessionAccepted"] | Session>(engram.api.POST("/sessions", { params, body }));
      location.hash = address("sessions", begun.session_id, { c: collection });
    } catch (failed) {
      setError(failed);
    }
  };
  return (
    <form class="panel stack" onSubmit={(event) => void start(event)}>
      <div class="question">
        <input type="text" aria-label="Question of the session" placeholder="A question of several hops" value={question} onInput={(event) => setQuestion(event.currentTarget.value)} />
        <button class="main" disabled={question.trim() === ""}>
          Start
        </button>
      </div>
      <div class="row arms">
        <Choice legend="Planner" name="planner" value={planner} options={planners} onChoose={setPlanner} />
        <label class="field inline">
          <span>Rounds at most</span>
          <input type="number" min={1} max={20} value={rounds} onInput={(event) => setRounds(Number(event.currentTarget.value) || 1)} />
        </label>
      </div>
      <Problem error={error} />
    </form>
  );
}

const TONES: Record<string, string> = { running: "accent", failed: "bad" };

function inWords(stopReason: string | null): string {
  if (stopReason === "found") return "evidence found";
  return stopReason === "not_found" ? "not found here" : (stopReason ?? "").replaceAll("_", " ");
}

function Standing({ of: { status, stop_reason } }: { of: Schemas["ListedSessionOut"] }) {
  return (
    <>
      <span class={`badge ${TONES[status] ?? ""}`}>{status}</span> {status === "stopped" && <span class="quiet">{inWords(stop_reason)}</span>}
    </>
  );
}

const PAUSE_MS = 800;

function Follow({ id }: { id: string }) {
  const { engram, collection } = useShared();
  const [rounds, setRounds] = useState<Round[]>([]);
  const [session, setSession] = useState<Session | null>(null);
  const [error, setError] = useState<unknown>();
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    const run = async () => {
      setRounds([]);
      setSession(null);
      const params = { path: { session_id: id }, query: { collection } };
      const look = () => read<Session>(engram.api.GET("/sessions/{session_id}", { params }));
      setSession(await look());
      for (let after = 0; ; ) {
        try {
          for await (const round of engram.sessionRounds(id, { after, signal: stop.signal })) {
            after = round.number;
            setRounds((before) => [...before, round]);
          }
          setSession(await look());
          return;
        } catch (failed) {
          // A service that starts anew takes the session up where it was, and so does the page.
          if (stop.signal.aborted || !(failed instanceof EngramError) || failed.status !== 0) throw failed;
          await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
        }
      }
    };
    run().catch((failed: unknown) => !stop.signal.aborted && setError(failed));
    return () => stop.abort();
  }, [id, turn]);
  const cancel = () => engram.cancelSession(id).then(setSession, setError);
  const further = async () => {
    const params = { path: { session_id: id } };
    try {
      await read(engram.api.POST("/sessions/{session_id}/rounds", { params, body: { collection } }));
      setTurn((one) => one + 1);
    } catch (failed) {
      setError(failed);
    }
  };
  if (error !== undefined) return <Problem error={error} />;
  if (session === null) return <Waiting what="Looking for the session" />;
  const running = session.status === "running";
  return (
    <div class="two">
      <div class="stack">
        <Panel title={session.question} note={running ? <Waiting what="Running" /> : `${session.status}: ${inWords(session.stop_reason)}`}>
          <ol class="rounds" aria-live="polite">
            {rounds.map((round) => (
              <RoundRow key={round.number} round={round} />
            ))}
          </ol>
          {rounds.length === 0 && <p class="quiet">{running ? "The first round is under way." : "It did no round."}</p>}
        </Panel>
        {session.answer && (
          <Panel title="Answer" note={session.answer.sufficient ? "on sufficient evidence" : "the evidence does not suffice"}>
            <p>{session.answer.text}</p>
          </Panel>
        )}
        {session.evidence.length > 0 && (
          <Panel title="Pool of evidence" note={counted(session.evidence.length, "sentence")}>
            <ul class="stack close">
              {session.evidence.map((one) => (
                <li key={one.sentence_id}>
                  <mark>{one.text}</mark>{" "}
                  <span class="quiet">
                    {one.passage_id}, round {one.round}
                    {one.gap && `, for “${one.gap}”`}
                  </span>
                </li>
              ))}
            </ul>
          </Panel>
        )}
      </div>
      <div class="stack beside">
        <Panel title="Is it enough?">
          {session.stop_reason === "not_found" ? <p>Not found here: nothing that was read seems to have the answer.</p> : <Gauge probability={session.sufficiency} />}
        </Panel>
        <Panel title="Cost">
          <Cost session={session} />
        </Panel>
        <div class="row">
          {running ? (
            <button type="button" class="danger" onClick={() => void cancel()}>
              Cancel
            </button>
          ) : (
            <button type="button" disabled={session.status !== "stopped"} onClick={() => void further()}>
              One more round
            </button>
          )}
        </div>
      </div>
    </div>
  );
}

function RoundRow({ round }: { round: Round }) {
  return (
    <li>
      <span class="rank figure">{round.number}</span>
      <div>
        <h3>{round.sub_question ?? round.action}</h3>
        {round.gap && <p class="quiet">It lacked: {round.gap.text}</p>}
        {round.queries.map((query, at) => (
          <p key={query}>
            {round.query_ids[at] ? <a href={address("why", round.query_ids[at])}>{query}</a> : query}
          </p>
        ))}
        <p class="quiet figure">
          {counted(round.curated.kept ?? 0, "sentence")} kept
          {round.covered !== null && `, ${percent(round.covered)} of the question covered`}
          {round.sufficiency !== null && `, enough with ${percent(round.sufficiency)}`}
        </p>
        {round.warnings.map((warning) => (
          <p key={warning.type} class="quiet">
            {warning.detail}
          </p>
        ))}
      </div>
    </li>
  );
}

const COSTS = [
  ["rounds", "Rounds", 0],
  ["passages", "Passages", 0],
  ["seconds", "Seconds", 1],
  ["llm_calls", "Model calls", 0],
] as const;

function Cost({ session }: { session: Session }) {
  return (
    <dl class="bars">
      {COSTS.map(([name, title, digits]) => {
        const spent = session.cost[name] ?? 0;
        const most = session.budget[name] ?? 0;
        return (
          <>
            <dt>{title}</dt>
            <dd>
              <Bar value={spent} most={most || 1} />
            </dd>
            <dd class="number">
              {figure(spent, digits)} <span class="quiet">of {most}</span>
            </dd>
          </>
        );
      })}
    </dl>
  );
}
