/** Whether the service can serve, what waits, and how much of what there is is used. */

import { useEffect } from "preact/hooks";

import { Await, Bar, Head, moment, Panel } from "../parts/basic";
import { plain, read, type Schemas } from "../service";
import { useLoaded, useShared } from "../state";
import { Table } from "../parts/table";

const EVERY = 5_000;

export function Health() {
  const { engram, may } = useShared();
  const ready = useLoaded(() => read<Schemas["ReadinessOut"]>(engram.api.GET("/readyz")), []);
  const quotas = useLoaded(() => read<Schemas["QuotasOut"]>(engram.api.GET("/access/quotas")), []);
  useEffect(() => {
    const timer = setInterval(() => {
      ready.again();
      quotas.again();
    }, EVERY);
    return () => clearInterval(timer);
  }, []);
  return (
    <>
      <Head title="Health">The parts of the service, its backlog and its quotas, read every five seconds.</Head>
      <div class="stack">
        <Await of={ready}>{(data) => <Standing ready={data} />}</Await>
        <div class="half">
          <Await of={quotas}>{(data) => <Quotas of={data} />}</Await>
          {may("read", true) && <Indexes />}
        </div>
        {may("audit", true) && <Stages />}
        {may("audit", true) && <Acts />}
      </div>
    </>
  );
}

function Standing({ ready }: { ready: Schemas["ReadinessOut"] }) {
  const rows: readonly (readonly [string, string, boolean])[] = [
    ["Service", ready.status, ready.status === "ok"],
    ["Postgres", ready.postgres, ready.postgres === "ok"],
    ["Redis", ready.redis, ready.redis === "ok"],
    ["Workers", ready.workers === null ? "unknown without Redis" : String(ready.workers), (ready.workers ?? 0) > 0],
    ["Verdicts waiting", waited(ready.oldest_verdict_seconds), (ready.oldest_verdict_seconds ?? 0) < 60],
    ["Jobs waiting", waited(ready.oldest_job_seconds), (ready.oldest_job_seconds ?? 0) < 60],
  ];
  return (
    <div class="stack">
      <ul class="tiles">
        {rows.map(([name, said, well]) => (
          <li key={name} class={well ? "well" : "unwell"}>
            <span>{name}</span>
            <strong>{said}</strong>
          </li>
        ))}
      </ul>
      <Panel>
        <dl class="facts">
          <dt>Encoder</dt>
          <dd>{ready.encoder}</dd>
          <dt>Language</dt>
          <dd>{ready.language}</dd>
          <dt>Language model</dt>
          <dd>{ready.llm}</dd>
          <dt>Migrations</dt>
          <dd>{ready.migrations}</dd>
          {ready.disk_free_bytes !== null && (
            <>
              <dt>Free disk space</dt>
              <dd>{(ready.disk_free_bytes / 2 ** 30).toFixed(1)} GiB</dd>
            </>
          )}
        </dl>
      </Panel>
    </div>
  );
}

function waited(seconds: number | null): string {
  if (seconds === null) return "none";
  return seconds < 90 ? `since ${Math.round(seconds)} s` : `since ${Math.round(seconds / 60)} min`;
}

const QUOTAS: Record<Schemas["QuotaOut"]["kind"], string> = {
  passages: "Passages held",
  jobs: "Jobs open",
  queries: "Queries today",
  verdicts: "Verdicts today",
  llm_tokens: "Model tokens today",
  judges: "Judges",
  collections: "Collections",
  keys: "Access keys",
  sessions: "Sessions today",
  facts: "Facts today",
};

function Quotas({ of }: { of: Schemas["QuotasOut"] }) {
  return (
    <Panel title="Quotas" note={`of tenant ${of.tenant}; days are UTC`}>
      <dl class="bars">
        {of.quotas.map((one) => (
          <>
            <dt>{QUOTAS[one.kind]}</dt>
            <dd>{one.limit === null ? <span class="quiet">no limit</span> : <Bar value={one.used} most={one.limit} tone={one.used > 0.9 * one.limit ? "bad" : "accent"} />}</dd>
            <dd class="number">
              {one.limit === null && !["passages", "jobs"].includes(one.kind) ? "not counted" : one.used.toLocaleString("en")}
              {one.limit !== null && <span class="quiet"> of {one.limit.toLocaleString("en")}</span>}
            </dd>
          </>
        ))}
      </dl>
    </Panel>
  );
}

function Indexes() {
  const { engram } = useShared();
  const collections = useLoaded(() => read<Schemas["CollectionsOut"]>(engram.api.GET("/collections", { params: { query: { limit: 100 } } })), []);
  return (
    <Panel title="Vector indexes" note="A small collection is searched exactly and needs none">
      <Await of={collections}>
        {(data) => (
          <>
            {data.out_of_reach.length > 0 && <p role="status">In other databases, out of reach: {data.out_of_reach.join(", ")}</p>}
            <Table
              rows={data.collections}
              by={(one) => one.name}
              columns={[
                { title: "Collection", heads: true, cell: (one) => one.name },
                { title: "Passages", class: "number", cell: (one) => one.passage_count.toLocaleString("en") },
                {
                  title: "Indexed",
                  cell: (one) =>
                    one.indexed.length ? one.indexed.map((table) => <span key={table} class="badge accent">{table}</span>) : <span class="quiet">exact search</span>,
                },
              ]}
            />
          </>
        )}
      </Await>
    </Panel>
  );
}

interface Stage {
  name: string;
  count: number;
  mean: number;
}

/** Mean times by stage, of the metrics of the process that answers; absent where it shows none here. */
function Stages() {
  const stages = useLoaded<Stage[]>(async () => {
    const page = await plain("metrics");
    const read_ = (what: string) => new Map([...page.matchAll(new RegExp(`^engram_stage_seconds_${what}\\{stage="([^"]+)"\\} (\\S+)$`, "gm"))].map((found) => [found[1] ?? "", Number(found[2])]));
    const counts = read_("count");
    const sums = read_("sum");
    return [...counts].filter(([, count]) => count > 0).map(([name, count]) => ({ name, count, mean: ((sums.get(name) ?? 0) / count) * 1000 }));
  }, []);
  if (!stages.data?.length) return null;
  const most = Math.max(...stages.data.map((one) => one.mean));
  return (
    <Panel title="Time by stage" note="Mean of each stage in the process that answered, since it started">
      <dl class="bars">
        {stages.data.map((one) => (
          <>
            <dt>{one.name}</dt>
            <dd>
              <Bar value={one.mean} most={most} />
            </dd>
            <dd class="number">
              {one.mean.toFixed(1)} ms <span class="quiet">× {one.count.toLocaleString("en")}</span>
            </dd>
          </>
        ))}
      </dl>
    </Panel>
  );
}

function Acts() {
  const { engram } = useShared();
  const entries = useLoaded(() => read<Schemas["AuditLogOut"]>(engram.api.GET("/audit", { params: { query: { limit: 20 } } })), []);
  return (
    <Await of={entries}>
      {(data) =>
        data.entries.length === 0 ? null : (
          <Panel title="Audit log" note="The latest first">
            <Table
              rows={data.entries}
              by={(one) => one.id}
              columns={[
                { title: "When", class: "when", cell: (one) => moment(one.begun_at) },
                { title: "Who", cell: (one) => one.principal },
                { title: "What", cell: (one) => <>{one.action} <span class="quiet">{one.target}</span></> },
                { title: "Answer", class: "number", cell: (one) => one.status ?? "unknown" },
              ]}
            />
          </Panel>
        )
      }
    </Await>
  );
}
