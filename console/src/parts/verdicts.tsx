/** Verdicts, the latest first; what one changed, and what would change without it. */

import { useEffect, useState } from "preact/hooks";

import { read, type Schemas } from "../service";
import { address, useLoaded, usePlace, useShared } from "../state";
import { TOP_K } from "./question";
import { Await, Bar, counted, Dialog, Empty, figure, moment, Panel, Problem, Waiting } from "./basic";
import { CHANNELS } from "./verdict_effect";
import { type Movement, Slopes } from "./slopes";
import { Table } from "./table";

const LAST = Number.MAX_SAFE_INTEGER;
const TONES: Record<string, string> = { applied: "good", parked: "bad", revoked: "", pending: "warm" };

export function VerdictsPart() {
  const { engram, collection } = useShared();
  const { about } = usePlace();
  const [before, setBefore] = useState(LAST);
  const open = /^\d+$/.test(about) ? Number(about) : null;
  const page = useLoaded(() => {
    const params = { query: { collection, before, limit: 50 } };
    return read<Schemas["FeedbackPage"]>(engram.api.GET("/feedback", { params }));
  }, [collection, before]);
  const close = () => {
    location.hash = address("learned", "verdicts");
  };
  return (
    <div class="stack">
      <Await of={page}>
        {(data) =>
          data.feedback.length === 0 ? (
            <Empty title="No verdict yet" />
          ) : (
            <Panel title="Verdicts" note="The latest first">
              <Table
                rows={data.feedback}
                by={(one) => one.feedback_id}
                columns={[
                  { title: "Verdict", cell: (one) => <a href={address("learned", String(one.feedback_id))}>Verdict {one.feedback_id}</a> },
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
                  { title: "Its query", quiet: true, cell: (one) => <a href={address("why", one.query_id)}>Its answer</a> },
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

interface Seen {
  verdict: Schemas["FeedbackDetail"];
  preview: Schemas["PreviewOut"];
  asked: Schemas["EpisodeOut"] | null;
}

function Verdict({ id, onClose, onRevoked }: { id: number; onClose: () => void; onRevoked: () => void }) {
  const { engram, collection, me, may } = useShared();
  const [error, setError] = useState<unknown>();
  const seen = useLoaded<Seen>(async () => {
    const params = { path: { feedback_id: id }, query: { collection } };
    const [verdict, preview] = await Promise.all([
      read<Schemas["FeedbackDetail"]>(engram.api.GET("/feedback/{feedback_id}", { params })),
      read<Schemas["PreviewOut"]>(engram.api.GET("/feedback/{feedback_id}/without", { params })),
    ]);
    const query = { path: { query_id: verdict.query_id }, query: { collection } };
    const asked = await read<Schemas["EpisodeOut"]>(engram.api.GET("/queries/{query_id}", { params: query })).catch(() => null);
    return { verdict, preview, asked };
  }, [id]);
  const revoke = async () => {
    try {
      await engram.revoke(id);
      onRevoked();
      seen.again();
    } catch (failed) {
      setError(failed);
    }
  };
  return (
    <Dialog title={`Verdict ${id}`} onClose={onClose}>
      <Await of={seen}>
        {({ verdict, preview, asked }) => (
          <div class="stack">
            <dl class="facts">
              <dt>Question</dt>
              <dd>{asked?.query ?? <span class="quiet">no longer kept</span>}</dd>
              <dt>Judge</dt>
              <dd>{verdict.judge}</dd>
              <dt>State</dt>
              <dd>
                <span class={`badge ${TONES[verdict.status] ?? ""}`}>{verdict.status}</span> received {moment(verdict.received_at)}
                {verdict.revoked_at && `, revoked ${moment(verdict.revoked_at)}`}
              </dd>
            </dl>
            {verdict.status === "applied" && asked && may("query") && <Order verdict={id} question={asked} />}
            {verdict.status === "applied" ? <Without preview={preview} /> : <p>It counts for nothing {verdict.status === "revoked" ? "any more" : "yet"}.</p>}
            <Problem error={error} />
            {verdict.status !== "revoked" && (may("moderate") || verdict.judge === me.judge) && (
              <div class="row">
                <button type="button" class="danger" onClick={() => void revoke()}>
                  Revoke verdict {id}
                </button>
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
      {preview.models.length > 0 && <p>The weights of {preview.models.map((one) => (one === "sufficiency" ? "what is enough" : "the ranking")).join(" and of ")} would lose what it taught.</p>}
      {preview.states.length > 0 && <Table
        rows={preview.states}
        by={(one) => `${one.sentence_id} ${one.channel}`}
        columns={[
          { title: "Sentence", cell: (one) => <>{one.text} <span class="quiet">{CHANNELS[one.channel]}</span></> },
          {
            title: "Likeness, now and without",
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
          { title: "Perplexity", class: "number", cell: (one) => `${figure(one.perplexity)} → ${figure(one.without_perplexity)}` },
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
