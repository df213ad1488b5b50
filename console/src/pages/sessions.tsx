/** The page of sessions: rounds as they come, the pool of evidence, and the cost. */

import { useEffect, useState } from "preact/hooks";

import { Await, Bar, Choice, counted, Empty, figure, Head, moment, Panel, percent, Problem, Waiting } from "../parts/basic";
import { CopyButton } from "../parts/copy_button";
import { Gauge } from "../parts/gauge";
import { SampleQuestions } from "../parts/sample_questions";
import { sourcePath } from "../parts/source";
import { Term } from "../parts/term";
import { EngramError, read, type Schemas } from "../service";
import { address, useLoaded, usePlace, useShared } from "../state";
import { Table } from "../parts/table";

type Session = Schemas["SessionOut"];
type Round = Schemas["RoundOut"];

export function Sessions() {
  const { about } = usePlace();
  return (
    <>
      <Head title="Sessions">A session asks in rounds, until its evidence is probably enough, it knows no further question, or a budget is spent.</Head>
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
          <div>
            <Empty title="No session yet">The rounds of a session show here as they come.</Empty>
            <SampleQuestions page="sessions" />
          </div>
        ) : (
          <Panel title="Sessions" note="The latest first">
            <Table
              rows={data.sessions}
              by={(one) => one.session_id}
              columns={[
                { title: "Question", heads: true, cell: (one) => <a href={address("sessions", one.session_id, { c: collection })}>{one.question}</a> },
                { title: "Planner", cell: (one) => one.planner },
                { title: "Rounds", class: "number", cell: (one) => one.rounds },
                { title: "State", cell: (one) => <State session={one} /> },
                { title: "Started", class: "when", cell: (one) => moment(one.created_at) },
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
  const { settings } = usePlace();
  const suggested = settings.get("q") ?? "";
  const [question, setQuestion] = useState(suggested);
  useEffect(() => {
    if (suggested) setQuestion(suggested);
  }, [suggested]);
  const [planner, setPlanner] = useState<Planner>("auto");
  const [rounds, setRounds] = useState(3);
  const [error, setError] = useState<unknown>();
  const planners: readonly (readonly [Planner, string])[] = model
    ? [["auto", "Auto"], ["pool", "Pool"], ["socratic", "Socratic"], ["tree", "Tree"]]
    : [["auto", "Auto"], ["pool", "Pool"]];
  const start = async () => {
    setError(undefined);
    try {
      const body = { collection, question, planner, budget: { rounds } };
      const params = { header: { "idempotency-key": crypto.randomUUID() } };
      const started = await read<Schemas["AcceptedSession"] | Session>(engram.api.POST("/sessions", { params, body }));
      location.hash = address("sessions", started.session_id, { c: collection });
    } catch (failed) {
      setError(failed);
    }
  };
  return (
    <form
      class="panel stack"
      onSubmit={(event) => {
        event.preventDefault();
        void start();
      }}
    >
      <div class="question">
        <input type="text" aria-label="Question of the session" placeholder="A question of several hops" value={question} onInput={(event) => setQuestion(event.currentTarget.value)} />
        <button class="main" disabled={question.trim() === ""}>
          Start
        </button>
      </div>
      <div class="row arms">
        <Choice legend="Planner" term="planner" name="planner" value={planner} options={planners} onChoose={setPlanner} />
        <label class="field inline">
          <span>Rounds at most</span>
          <input type="number" min={1} max={20} value={rounds} onInput={(event) => setRounds(Number(event.currentTarget.value) || 1)} />
        </label>
      </div>
      <Problem error={error} again={() => void start()} />
    </form>
  );
}

/** Below it, evidence is more likely missing than not. */
const LIKELY = 0.5;

const TONES: Record<string, string> = { running: "accent", failed: "bad" };

/** Why a session stopped. No reason speaks of whether the evidence is enough: the gauge does that. */
const STOP_REASONS: Record<string, string> = {
  sufficiency: "the probability was reached",
  covered: "every word of the question is named",
  found: "what it read seems to have the answer",
  answered: "the language model answered",
  sufficient: "the published classifier stopped it",
  not_found: "it knows no further question, and no answer was found",
  no_gap: "it knows no further question",
  nothing_new: "the last round brought nothing new",
  asked: "the requested rounds are done",
  rounds: "the rounds are used up",
  llm_calls: "the model calls are used up",
  tokens: "the tokens are used up",
  seconds: "the time is used up",
  passages: "the passages are used up",
  cancelled: "it was cancelled",
  failed: "it failed",
  erased: "a passage that it had read was deleted",
};

/** The reason in words. Where a session knows no further question, whether its evidence is enough is what matters. */
function stopReason({ stop_reason: reason, sufficiency }: Pick<Session, "stop_reason" | "sufficiency">): string {
  if (reason === null) return "";
  if (reason === "no_gap" && sufficiency !== null && sufficiency >= LIKELY) return "its evidence is probably enough";
  return STOP_REASONS[reason] ?? reason.replaceAll("_", " ");
}

function State({ session }: { session: Schemas["ListedSessionOut"] }) {
  return (
    <>
      <span class={`badge ${TONES[session.status] ?? ""}`}>{session.status}</span>{" "}
      {session.status === "stopped" && <span class="quiet">{stopReason(session)}</span>}
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
      setError(undefined);
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
  if (error !== undefined) return <Problem error={error} again={() => setTurn((one) => one + 1)} />;
  if (session === null) return <Waiting what="Looking for the session" />;
  const running = session.status === "running";
  return (
    <div class="two">
      <div class="stack">
        <Panel title={session.question} note={running ? <Waiting what="Running" /> : `${session.status}: ${stopReason(session)}`}>
          <ol class="rounds" aria-live="polite">
            {rounds.map((round) => (
              <RoundRow key={round.number} round={round} />
            ))}
          </ol>
          {rounds.length === 0 && <p class="quiet">{running ? "The first round is under way." : "It did no round."}</p>}
        </Panel>
        {session.answer && (
          <Panel title="Answer" note={session.answer.sufficient ? "the model found the evidence sufficient" : "the model did not find the evidence sufficient"}>
            <p>{session.answer.text}</p>
          </Panel>
        )}
        {session.evidence.length > 0 && (
          <Panel title={<Term name="pool">Pool of evidence</Term>} note={counted(session.evidence.length, "sentence")}>
            <ul class="stack close">
              {session.evidence.map((one) => (
                <li key={one.sentence_id}>
                  <mark>{one.text}</mark>{" "}
                  <span class="quiet">
                    {sourcePath(one.source)}, round {one.round}
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
          {session.stop_reason === "not_found" ? (
            <p>No: nothing that was read seems to have the answer.</p>
          ) : (
            <div class="stack close">
              <Gauge probability={session.sufficiency} />
              {!running && session.sufficiency !== null && session.sufficiency < LIKELY && (
                <p class="quiet">It stopped because {stopReason(session)}. One more round may bring the rest.</p>
              )}
            </div>
          )}
        </Panel>
        <div class="row">
          <CopyButton text={() => location.href} label="Copy link" subject="this session" />
          <CopyButton text={session.session_id} label="Copy session id" />
        </div>
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

/** What a round without a sub-question did; planners of their own have further actions. */
const ACTIONS: Record<string, string> = {
  ask: "Asked the question",
  fill: "Searched for missing evidence",
  given: "Used the evidence that you gave",
  skip: "Skipped a part that is answered",
};

function RoundRow({ round }: { round: Round }) {
  const { collection } = useShared();
  return (
    <li>
      <span class="rank figure">{round.number}</span>
      <div>
        <h3>{round.sub_question ?? ACTIONS[round.action] ?? round.action}</h3>
        {round.gap && <p class="quiet">Looked for: {round.gap.text}</p>}
        {round.queries.map((query, at) => (
          <p key={query}>
            {round.query_ids[at] ? <a href={address("ask", round.query_ids[at], { c: collection })}>{query}</a> : query}
          </p>
        ))}
        <p class="quiet figure">
          {counted(round.curated.kept ?? 0, "new sentence")}
          {round.covered !== null && (
            <>
              ; the pool <Term name="named">names</Term> {percent(round.covered)} of the question
            </>
          )}
          {round.sufficiency !== null && (
            <>
              ; <Term name="sufficiency">sufficiency</Term> {percent(round.sufficiency)}
            </>
          )}
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
