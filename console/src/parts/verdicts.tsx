/** The list of verdicts, the latest first, and each one with the effect of revoking it. */

import { useEffect, useState } from "preact/hooks";

import { read, type Schemas } from "../service";
import { address, useLoaded, usePlace, useShared } from "../state";
import { TOP_K } from "./question";
import { Await, Bar, Choice, counted, Dialog, Empty, figure, moment, Panel, Problem, Waiting } from "./basic";
import { CHANNELS } from "./verdict_effect";
import { CopyButton } from "./copy_button";
import { SampleQuestions } from "./sample_questions";
import { type Movement, Slopes } from "./slopes";
import { Table } from "./table";
import { REASONS } from "./thumbs";

const LAST = Number.MAX_SAFE_INTEGER;
const TONES: Record<string, string> = { applied: "good", parked: "bad", revoked: "", pending: "warm" };

type Listed = Schemas["ListedFeedbackOut"];
type Status = "applied" | "pending" | "parked" | "revoked" | "stale";

const STATUSES: readonly (readonly [Status | "all", string])[] = [
  ["all", "All"],
  ["applied", "Applied"],
  ["pending", "Pending"],
  ["parked", "Parked"],
  ["revoked", "Revoked"],
  ["stale", "On changed texts"],
];
const PAGE = 50;

export function VerdictsPart() {
  const { engram, collection } = useShared();
  const { about, settings } = usePlace();
  const [before, setBefore] = useState(LAST);
  const open = /^\d+$/.test(about) ? Number(about) : null;
  const status: Status | "all" = STATUSES.find(([name]) => name === settings.get("status"))?.[0] ?? "all";
  const onAnswer = settings.get("query") ?? undefined;
  const page = useLoaded(() => {
    const chosen = status === "all" ? {} : status === "stale" ? { stale: true } : { status };
    const query = { collection, before, limit: PAGE, query_id: onAnswer, ...chosen };
    return read<Schemas["FeedbackPage"]>(engram.api.GET("/feedback", { params: { query } }));
  }, [collection, before, status, onAnswer]);
  const link = (verdict: string, filters: { status?: string; query?: string } = {}) =>
    address("learned", verdict, { c: collection, status: status === "all" ? undefined : status, query: onAnswer, ...filters });
  const close = () => {
    location.hash = link("verdicts");
  };
  return (
    <div class="stack">
      <div class="row arms">
        <Choice
          legend="State"
          name="status"
          value={status}
          options={STATUSES}
          onChoose={(name) => {
            setBefore(LAST);
            location.hash = link("verdicts", { status: name === "all" ? undefined : name });
          }}
        />
        {onAnswer && (
          <span class="row">
            Only verdicts on one answer
            <a href={link("verdicts", { query: undefined })}>Show all</a>
          </span>
        )}
      </div>
      <Await of={page}>
        {(data) =>
          data.feedback.length === 0 ? (
            <Nothing isFiltered={status !== "all" || onAnswer !== undefined} />
          ) : (
            <Panel title="Verdicts" note="The latest first">
              <Table
                class="verdicts"
                rows={data.feedback}
                by={(one) => one.feedback_id}
                columns={[
                  { title: "Verdict", class: "when", cell: (one) => <a href={link(String(one.feedback_id))}>Verdict {one.feedback_id}</a> },
                  { title: "Question", heads: true, cell: (one) => <AnswerLink verdict={one} /> },
                  { title: "What it says", cell: (one) => <Statement verdict={one} /> },
                  { title: "Judge", cell: (one) => one.judge },
                  { title: "Received", class: "when", cell: (one) => moment(one.received_at) },
                  {
                    title: "State",
                    cell: (one) => (
                      <>
                        <span class={`badge ${TONES[one.status] ?? ""}`}>{one.status}</span>
                        {one.error && <span class="quiet"> {one.error}</span>}
                      </>
                    ),
                  },
                ]}
              />
              <div class="row">
                {before !== LAST && (
                  <button type="button" class="small" onClick={() => setBefore(LAST)}>
                    Latest
                  </button>
                )}
                {data.next_before !== null && (
                  <button type="button" class="small" onClick={() => setBefore(data.next_before ?? LAST)}>
                    Earlier ones
                  </button>
                )}
              </div>
            </Panel>
          )
        }
      </Await>
      {open !== null && <Verdict key={open} id={open} onClose={close} onRevoked={page.again} />}
    </div>
  );
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No verdict matches" />;
  return (
    <div>
      <Empty title="No verdict yet">Ask a question, and press a thumb or judge sentences.</Empty>
      <SampleQuestions page="ask" />
    </div>
  );
}

function AnswerLink({ verdict }: { verdict: Listed }) {
  const { collection } = useShared();
  return (
    <a href={address("ask", verdict.query_id, { c: collection })}>{verdict.question ?? <span>an answer that your key does not show</span>}</a>
  );
}

const ROLES: Record<string, readonly [string, string]> = {
  supported: ["helped", "good"],
  missed: ["was missing", "warm"],
  rejected: ["did not help", "bad"],
  likely: ["in a helpful passage", "good"],
};
/** Sentences of a verdict that a row shows; the dialog shows the rest. */
const SHOWN = 3;

/** What a verdict says: its thumb, and the sentences that it names. */
function Statement({ verdict, most = SHOWN }: { verdict: Listed; most?: number }) {
  const { rating, reason, sentences, sentences_cut, supporting_passages } = verdict;
  const rest = sentences.length - most;
  return (
    <div class="stack close statement">
      {rating !== null && (
        <p>
          <span class={`badge ${rating === "up" ? "good" : rating === "down" ? "bad" : ""}`}>
            {rating === "withdrawn" ? "thumb taken back" : `thumb ${rating}`}
          </span>
          {reason && <span class="quiet"> {reasonLabel(reason)}</span>}
        </p>
      )}
      {supporting_passages.length > 0 && (
        <p>
          <span class="badge good">helped</span> {counted(supporting_passages.length, "passage")}: {supporting_passages.join(", ")}
        </p>
      )}
      {sentences.slice(0, most).map((one) => {
        const [label, tone] = ROLES[one.role] ?? [one.role, ""];
        return (
          <p key={one.sentence_id}>
            <span class={`badge ${tone}`}>{label}</span> {one.text ?? <span class="quiet">sentence {one.sentence_id}, which was deleted</span>}
            {one.likeness < 1 && <span class="badge warm">text changed, {Math.round(100 * one.likeness)}% alike</span>}
            {one.title && <span class="quiet"> {one.title}</span>}
          </p>
        );
      })}
      {rest > 0 && (
        <p class="quiet">
          and {counted(rest, "other")}
          {sentences_cut && " or more"}
        </p>
      )}
      {rest <= 0 && sentences_cut && <p class="quiet">and others</p>}
      {rating === null && sentences.length === 0 && supporting_passages.length === 0 && <p class="quiet">It names no sentence.</p>}
    </div>
  );
}

const reasonLabel = (reason: string): string => REASONS.find(([name]) => name === reason)?.[1] ?? reason;

interface Details {
  verdict: Schemas["FeedbackDetail"];
  /** What revoking it would change; null where the wing that tells is off. */
  preview: Schemas["PreviewOut"] | null;
  /** The verdict as the list has it; null if the list does not have it. */
  listed: Listed | null;
  /** The judged answer; null if it is no longer stored or the key does not show it. */
  answer: Schemas["EpisodeOut"] | null;
}

function Verdict({ id, onClose, onRevoked }: { id: number; onClose: () => void; onRevoked: () => void }) {
  const { engram, collection, me, may, has } = useShared();
  const [error, setError] = useState<unknown>();
  const details = useLoaded<Details>(async () => {
    const params = { path: { feedback_id: id }, query: { collection } };
    const list = { query: { collection, after: id - 1, limit: 1 } };
    const [verdict, preview, page] = await Promise.all([
      read<Schemas["FeedbackDetail"]>(engram.api.GET("/feedback/{feedback_id}", { params })),
      has("why") ? read<Schemas["PreviewOut"]>(engram.api.GET("/feedback/{feedback_id}/without", { params })) : null,
      read<Schemas["FeedbackPage"]>(engram.api.GET("/feedback", { params: list })),
    ]);
    const listed = page.feedback.find((one) => one.feedback_id === id) ?? null;
    const query = { path: { query_id: verdict.query_id }, query: { collection } };
    const answer = await read<Schemas["EpisodeOut"]>(engram.api.GET("/queries/{query_id}", { params: query })).catch(() => null);
    return { verdict, preview, listed, answer };
  }, [id]);
  const revoke = async () => {
    setError(undefined);
    try {
      await engram.revoke(id);
      onRevoked();
      details.again();
    } catch (failed) {
      setError(failed);
    }
  };
  return (
    <Dialog title={`Verdict ${id}`} onClose={onClose}>
      <Await of={details}>
        {({ verdict, preview, listed, answer }) => (
          <div class="stack">
            <dl class="facts">
              <dt>Question</dt>
              <dd>{listed ? <AnswerLink verdict={listed} /> : <span class="quiet">your key does not show it</span>}</dd>
              {listed && (
                <>
                  <dt>What it says</dt>
                  <dd>
                    <Statement verdict={listed} most={listed.sentences.length} />
                  </dd>
                </>
              )}
              <dt>Judge</dt>
              <dd>{verdict.judge}</dd>
              <dt>State</dt>
              <dd>
                <span class={`badge ${TONES[verdict.status] ?? ""}`}>{verdict.status}</span> received {moment(verdict.received_at)}
                {verdict.revoked_at && `, revoked ${moment(verdict.revoked_at)}`}
              </dd>
            </dl>
            {verdict.status === "applied" && preview && answer && may("query") && <Order verdict={id} question={answer} />}
            {verdict.status === "applied" ? preview && <Without preview={preview} /> : <p>It counts for nothing {verdict.status === "revoked" ? "any more" : "yet"}.</p>}
            <Problem error={error} again={() => void revoke()} />
            {verdict.status !== "revoked" && (may("moderate") || verdict.judge === me.judge) && (
              <div class="row">
                <button type="button" class="danger" onClick={() => void revoke()}>
                  Revoke verdict {id}
                </button>
                <CopyButton text={String(id)} label="Copy id" subject="the verdict" />
                <span class="quiet">What was learned is then as if it had never come.</span>
              </div>
            )}
          </div>
        )}
      </Await>
    </Dialog>
  );
}

/** Each state as it is, and as it would be. */
function Without({ preview }: { preview: Schemas["PreviewOut"] }) {
  return (
    <div>
      <h3>If it were revoked</h3>
      {preview.states.length === 0 && <p class="quiet">No memory would change.</p>}
      {preview.models.length > 0 && <p>The weights of {preview.models.map((one) => (one === "reranker" ? "the reranker" : "what is enough")).join(" and of ")} would lose what it taught.</p>}
      {preview.states.length > 0 && <Table
        rows={preview.states}
        by={(one) => `${one.sentence_id} ${one.channel}`}
        columns={[
          { title: "Sentence", cell: (one) => <>{one.text} <span class="quiet">{CHANNELS[one.channel]}</span></> },
          {
            title: "Likeness, now and without",
            term: "likeness",
            class: "pair",
            cell: (one) => (
              <>
                <div>
                  <Bar value={Math.max(one.likeness, 0)} /> <span class="figure">{figure(one.likeness)}</span>
                </div>
                <div>
                  <Bar value={Math.max(one.without_likeness, 0)} tone="soft" /> <span class="figure">{figure(one.without_likeness)}</span>
                </div>
              </>
            ),
          },
          { title: "Perplexity", term: "perplexity", class: "number", cell: (one) => `${figure(one.perplexity)} → ${figure(one.without_perplexity)}` },
        ]}
      />}
      {preview.cut && <p class="quiet">It moved more than is shown.</p>}
    </div>
  );
}

/** Its question's order as it is, and by scores less what the verdict adds to them. */
function Order({ verdict, question }: { verdict: number; question: Schemas["EpisodeOut"] }) {
  const { engram } = useShared();
  const [wanted, setWanted] = useState(false);
  const [movements, setMovements] = useState<Movement[] | null>(null);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    if (!wanted) return;
    const arm = { memory: "read" as const, profile: question.profile, strategy: question.strategy ?? "graph" };
    engram.query(question.query, { arm, top_k: 3 * TOP_K, include: ["trace"] }).then((answer) => setMovements(without(answer, verdict)), setError);
  }, [wanted]);
  if (!wanted) {
    return (
      <div>
        <button type="button" class="small" onClick={() => setWanted(true)}>
          Show its question’s order with and without it
        </button>
      </div>
    );
  }
  if (error !== undefined) return <Problem error={error} />;
  if (movements === null) return <Waiting what="Asking" />;
  const many = movements.filter((one) => one.before !== one.after).length;
  return (
    <div class="stack close">
      <p>{many === 0 ? "The order would stay." : `${counted(many, "passage")} would move.`}</p>
      <Slopes movements={movements} before="Now" after="Without it" />
    </div>
  );
}

function without(answer: Schemas["QueryOut"], verdict: number): Movement[] {
  const less = new Map(
    (answer.trace?.passages ?? []).map((one) => [
      one.passage_id,
      one.score - (one.influences.find((influence) => influence.feedback_id === verdict)?.score ?? 0),
    ]),
  );
  const order = [...less].sort(([, one], [, other]) => other - one).map(([id]) => id);
  return answer.passages.map((passage, at) => ({
    id: passage.passage_id,
    title: passage.title ?? passage.passage_id,
    before: at + 1,
    after: order.indexOf(passage.passage_id) + 1,
  }));
}
