/** The page that explains an answer: why each passage has its rank, every factor, the walk, and the verdicts behind it. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { answerById, latestAnswer } from "../parts/answer_state";
import { Await, Choice, counted, Empty, figure, Head, moment, Panel, percent, signed } from "../parts/basic";
import { Causes, Factors, ofSufficiency, ofPassage, points, SentenceFactors } from "../parts/factors";
import { GraphView } from "../parts/graph";
import { path } from "../parts/path";
import { memoryEffect, rankReason } from "../parts/rank_reason";
import { SampleQuestions } from "../parts/sample_questions";
import { sourcePath } from "../parts/source";
import { Term } from "../parts/term";
import { read, type Schemas } from "../service";
import { address, useLoaded, usePlace, useShared } from "../state";

type Explained = Schemas["QueryOut"] & { trace: Schemas["TraceOut"] };

export function Why() {
  const { engram, collection } = useShared();
  const { about } = usePlace();
  const known = (about ? answerById(about) : latestAnswer(collection))?.answer;
  const id = about || known?.query_id;
  const [memory, setMemory] = useState<"read" | "off">("read");
  const found = useLoaded<Explained | null>(async () => {
    if (!id) return null;
    if (known?.trace) return known as Explained;
    const params = { path: { query_id: id }, query: { collection } };
    return (await read<Schemas["EpisodeOut"]>(engram.api.GET("/queries/{query_id}", { params }))) as Explained;
  }, [id, collection]);
  const first = found.data;
  const without = useLoaded<Explained | null>(async () => {
    if (!first || memory === "read") return null;
    const arm = { memory: "off" as const, profile: first.profile, strategy: first.strategy ?? "graph" };
    const filter = "filter" in first && first.filter ? { filter: first.filter as Record<string, unknown> } : {};
    const top_k = Math.max(first.passages.length, 1);
    return (await engram.query(first.query, { arm, top_k, include: ["sentences", "trace"], ...filter })) as Explained;
  }, [first, memory]);
  const shown = memory === "off" && without.data ? without.data : first;

  return (
    <>
      <Head title="Why">Why each passage has its rank: the factors of its score, the verdicts behind them, and the walk.</Head>
      <Await of={found}>
        {(explained) =>
          explained === null ? (
            <div>
              <Empty title="Nothing to explain yet">
                <a href={address("ask", "", { c: collection })}>Ask a question</a>, then come back.
              </Empty>
              <SampleQuestions page="ask" />
            </div>
          ) : explained.trace.hops === undefined ? (
            <Empty title="This answer was stored without a trace" />
          ) : (
            <div class="stack">
              <div class="panel row" style={{ justifyContent: "space-between" }}>
                <div>
                  <h2>
                    <a href={address("ask", explained.query_id, { c: collection })}>{explained.query}</a>
                  </h2>
                  <p class="quiet">{summaryOf(explained)}</p>
                </div>
                {explained.memory === "read" && (
                  <Choice
                    legend="Memory"
                    name="why-memory"
                    value={memory}
                    options={[["read", "With memory"], ["off", "Without"]]}
                    onChoose={setMemory}
                  />
                )}
              </div>
              {shown && <Explanation key={shown.query_id} explained={shown} beside={shown === first ? null : (first ?? null)} />}
            </div>
          )
        }
      </Await>
    </>
  );
}

/** Sentences of a passage in sight; the others can be unfolded. */
const SENTENCES = 2;

function summaryOf(explained: Explained): string {
  const at = "created_at" in explained ? `${moment(String(explained.created_at))}, ` : "";
  const arm = `profile ${explained.profile}, memory ${explained.memory === "read" ? "on" : "off"}`;
  return `${at}${arm}, ${counted(explained.hops, "hop")}, ${Math.round(explained.timings.total_ms)} ms`;
}

function Explanation({ explained, beside }: { explained: Explained; beside: Explained | null }) {
  const { trace, passages } = explained;
  const [chosen, setChosen] = useState(passages[0]?.passage_id ?? null);
  const traced = trace.passages?.find((one) => one.passage_id === chosen);
  const hit = passages.find((one) => one.passage_id === chosen);
  const titleOf = (id: string) => {
    const found = passages.find((one) => one.passage_id === id);
    return found ? sourcePath(found.source) : id;
  };
  const selected = trace.hops.flatMap((hop) =>
    hop.sentences.filter((one) => one.passage_id === chosen).map((sentence) => ({ hop: hop.hop, sentence })),
  );
  const isMemoryRead = explained.memory === "read" && beside === null;
  const nothing = (what: string) =>
    !traced ? "This answer was kept without the verdicts behind it." : isMemoryRead ? `No verdict moved this ${what}.` : "Memory was not read.";
  return (
    <>
      {hit && (
        <Panel title={hit.title ?? hit.passage_id} class="reason">
          <p class="lead" aria-live="polite">
            {rankReason(explained, hit.passage_id)} {isMemoryRead && memoryEffect(traced)}
          </p>
        </Panel>
      )}
      <div class="why">
        <Panel title={beside ? "Order without memory" : "Order"} note="Choose a passage">
          <Order explained={explained} beside={beside} chosen={chosen} choose={setChosen} />
        </Panel>
        <div class="stack">
          {hit && (
            <Panel title="Factors" note={<><Term name="score">score</Term> <strong class="figure">{figure(hit.score)}</strong></>}>
              {traced && Object.keys(traced.features).length > 0 ? (
                <div class="stack close">
                  <Factors features={traced.features} recall={traced.recall} />
                  {traced.completes !== null && <p class="quiet">“The other passage” is “{titleOf(traced.completes)}”: to that one it adds most.</p>}
                </div>
              ) : traced ? (
                <p class="quiet">This profile ranks by sentences alone.</p>
              ) : (
                <p class="quiet">
                  This answer was kept without its factors. <a href={address("ask", "", { c: explained.collection, q: explained.query })}>Ask again</a> to see them.
                </p>
              )}
            </Panel>
          )}
          <Panel title="Verdicts behind it">
            <Causes
              causes={(traced?.influences ?? []).map((one) => ofPassage(one, traced?.text_since))}
              cut={traced?.influences_cut ?? false}
              nothing={nothing("passage")}
            />
          </Panel>
          {selected.length > 0 && (
            <Panel title="Its sentences" note="score = activation × meaning × memory × time">
              <div class="stack">
                {selected.slice(0, SENTENCES).map(({ hop, sentence }) => (
                  <SentenceFactors key={`${hop} ${sentence.sentence_id}`} hop={hop} sentence={sentence} />
                ))}
                {selected.length > SENTENCES && (
                  <details>
                    <summary>{selected.length - SENTENCES} more</summary>
                    {selected.slice(SENTENCES).map(({ hop, sentence }) => (
                      <SentenceFactors key={`${hop} ${sentence.sentence_id}`} hop={hop} sentence={sentence} />
                    ))}
                  </details>
                )}
              </div>
            </Panel>
          )}
        </div>
      </div>
      {isMemoryRead && <Rejected rejected={trace.rejected ?? []} />}
      <PathView explained={explained} onPassage={setChosen} />
      {trace.sufficiency && Object.keys(trace.sufficiency.features).length > 0 && (
        <Panel
          title="Is the evidence enough?"
          note={<><Term name="sufficiency">sufficiency</Term> {percent(trace.sufficiency.probability)}</>}
        >
          <div class="stack">
            {trace.sufficiency.vouched > 0 && <p>Verdicts on similar past questions alone give {percent(trace.sufficiency.vouched)}.</p>}
            {(trace.sufficiency.remembered ?? 0) > 0 && (
              <p>Verdicts on the evidence among the first five give at least {percent(trace.sufficiency.remembered ?? 0)}.</p>
            )}
            {(trace.sufficiency.judgements ?? []).length > 0 && (
              <>
                <p>
                  Judges said of earlier answers to this question whether they were enough. That leaves {percent(trace.sufficiency.undenied ?? 1)} of the
                  probability.
                </p>
                <Causes causes={(trace.sufficiency.judgements ?? []).map(ofSufficiency)} cut={false} nothing="" show={points} />
              </>
            )}
            <Causes
              causes={(trace.sufficiency.influences ?? []).map(ofSufficiency)}
              cut={trace.sufficiency.influences_cut ?? false}
              nothing={nothing("probability")}
              show={points}
            />
            <details>
              <summary>What it is computed from</summary>
              <p class="quiet">These add up to log odds, not to a probability: 0 stands for 50%, 2 for 88%, −2 for 12%.</p>
              <Factors features={trace.sufficiency.features} />
            </details>
          </div>
        </Panel>
      )}
    </>
  );
}

/** Passages that judges rejected for this question or one with the same need, each with the verdicts, which can be revoked. */
function Rejected({ rejected }: { rejected: readonly Schemas["RejectionTraceOut"][] }) {
  if (rejected.length === 0) return null;
  return (
    <Panel title="Rejected" note="Open a verdict to revoke it">
      <div class="stack">
        {rejected.map((one) => (
          <div key={one.passage_id}>
            <p>
              <strong>{one.title ?? one.passage_id}</strong>: {one.judges === null ? "judges" : counted(one.judges, "judge")} said that this is not it. It is{" "}
              {one.rank === null ? "not in the answer" : `at rank ${one.rank}`}
              {one.score !== 0 && <>, its score changed by {signed(one.score, 3)}</>}.
            </p>
            <Causes causes={one.influences.map((cause) => ofPassage(cause))} cut={one.influences_cut} nothing="Their verdicts are too many to be listed." />
          </div>
        ))}
      </div>
    </Panel>
  );
}

interface OrderProps {
  explained: Explained;
  beside: Explained | null;
  chosen: string | null;
  choose: (passage: string) => void;
}

function Order({ explained, beside, chosen, choose }: OrderProps) {
  const other = (id: string, at: number): number | null => {
    if (beside) return beside.passages.findIndex((one) => one.passage_id === id) + 1 || null;
    return explained.trace.passages?.[at]?.rank_without_memory ?? null;
  };
  const best = Math.max(...explained.passages.map((one) => one.score), 1e-9);
  return (
    <ol class="order">
      {explained.passages.map((passage, at) => {
        const rank = at + 1;
        const elsewhere = other(passage.passage_id, at);
        return (
          <li key={passage.passage_id}>
            <button type="button" aria-pressed={passage.passage_id === chosen} onClick={() => choose(passage.passage_id)}>
              <span class="figure">{rank}</span>
              <span>{sourcePath(passage.source)}</span>
              <small class={elsewhere === rank ? "" : elsewhere === null || elsewhere > rank ? "rises" : "falls"}>
                {(explained.memory === "read" && explained.trace.passages) || beside ? rankElsewhere(rank, elsewhere, beside !== null) : ""}
              </small>
              <svg viewBox="0 0 100 3" preserveAspectRatio="none" aria-hidden="true">
                <rect class="fill-accent" height="3" width={Math.max(0, (passage.score / best) * 100)} />
              </svg>
            </button>
          </li>
        );
      })}
    </ol>
  );
}

function rankElsewhere(rank: number, other: number | null, without: boolean): string {
  if (other === rank) return "";
  const where = other === null ? (without ? "not among the first" : "not ranked") : String(other);
  return without ? `with memory ${where}` : `without ${where}`;
}

function PathView({ explained, onPassage }: { explained: Explained; onPassage: (passage: string) => void }) {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const height = 430;
  useEffect(() => setWidth(place.current?.clientWidth ?? 900), []);
  const made = useMemo(() => (width ? path(explained, explained.trace, width, height) : null), [explained, width]);
  const [step, setStep] = useState(99);
  const [selected, setSelected] = useState<string | null>(null);
  const steps = made?.steps ?? 1;
  const now = Math.min(step, steps);
  const timer = useRef(0);
  useEffect(() => () => clearInterval(timer.current), []);
  const play = () => {
    clearInterval(timer.current);
    let at = 0;
    setStep(at);
    timer.current = window.setInterval(() => {
      at += 1;
      setStep(at);
      if (at >= steps) clearInterval(timer.current);
    }, 900);
  };
  const shows = useMemo(() => {
    const graph = made?.graph;
    return (node: string) => (graph ? Number(graph.getNodeAttribute(node, "step")) <= now : false);
  }, [made, now]);
  const select = (node: string | null) => {
    setSelected(node);
    if (node?.startsWith("passage ")) onPassage(node.slice("passage ".length));
  };
  return (
    <Panel title="The walk" note={<Legend />}>
      <div ref={place}>
        {made && (
          <GraphView
            graph={made.graph}
            label={`From the question over ${counted(explained.trace.hops.length, "hop")} to ${counted(explained.passages.length, "passage")}; the list below says the same.`}
            height={height}
            shows={shows}
            selected={selected}
            onSelect={select}
            settings={{ labelDensity: 100, labelGridCellSize: 1, labelRenderedSizeThreshold: 0, minCameraRatio: 0.3, maxCameraRatio: 1.5 }}
          />
        )}
      </div>
      <div class="row grow">
        <button type="button" class="small" onClick={play}>
          Grow by hops
        </button>
        <input type="range" min={0} max={steps} step={1} value={now} aria-label="Hops shown" onInput={(event) => setStep(Number(event.currentTarget.value))} />
        <span class="quiet" aria-live="polite">
          {now === 0 ? "The question" : now >= steps ? "All hops and the passages" : `Up to hop ${now}`}
        </span>
      </div>
      <Hops trace={explained.trace} />
    </Panel>
  );
}

function Legend() {
  return (
    <span class="legend">
      {(["question", "entity", "sentence", "passage"] as const).map((kind) => (
        <span key={kind} class={kind}>
          {kind}
        </span>
      ))}
    </span>
  );
}

function Hops({ trace }: { trace: Schemas["TraceOut"] }) {
  return (
    <details>
      <summary>As a list</summary>
      <ol class="hops">
        {trace.hops.map((hop) => (
          <li key={hop.hop}>
            <h3>
              Hop {hop.hop}: {counted(hop.candidates, "sentence")} reached, {hop.sentences.length} selected
              {hop.coverage !== null && `, ${percent(hop.coverage)} of the question named`}
            </h3>
            <p class="quiet">From {Object.entries(hop.entities).map(([name, activation]) => `${name} (${figure(activation)})`).join(", ")}</p>
            <ul>
              {hop.sentences.map((one) => (
                <li key={one.sentence_id}>
                  <span class="figure quiet">{figure(one.score, 3)}</span> {one.text}
                </li>
              ))}
            </ul>
          </li>
        ))}
        {trace.recalled.map((one) => (
          <li key={one.sentence_id} class="quiet">
            Recalled with {percent(one.recall_probability)}: sentence {one.sentence_id}
            {one.past_question && `, by “${one.past_question}”`}. {describeVotes(one)}
            {one.contrasts.length > 0 && ` The two questions differ in ${one.contrasts.join(", ")}.`}
          </li>
        ))}
      </ol>
    </details>
  );
}

/** What judged questions near this one say of a passage, in words. */
function describeVotes(recalled: { supporters: number; others: number; same_need: number; learned_from: number }): string {
  const { supporters, others } = recalled;
  const near = `${supporters} judged ${supporters === 1 ? "question near this one was" : "questions near this one were"}`;
  const against = others > 0 ? `, ${others} by another` : "";
  const basis = recalled.learned_from > 0 ? `, by what ${recalled.learned_from} judged questions show` : "";
  return `${near} answered by this passage${against}; that makes it right with ${percent(recalled.same_need)}${basis}.`;
}
