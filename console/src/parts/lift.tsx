/** What each arm of an experiment comes to, beside the others. */

import { useState } from "preact/hooks";

import { read, type Schemas } from "../service";
import { useLoaded, useShared } from "../state";
import { Await, Bar, counted, Empty, figure, Panel, percent, signed } from "./basic";
import { Table } from "./table";

const FIGURES = [
  ["retrieval_success", "Evidence found", true],
  ["evidence_recall", "Evidence in the answer", true],
  ["reciprocal_rank", "Rank of the first, reciprocal", true],
  ["generation_success", "Answer right", true],
  ["hops", "Hops", false],
] as const;

export function LiftPart() {
  const { engram, collection } = useShared();
  const [days, setDays] = useState("");
  const from = days ? new Date(Date.now() - Number(days) * 86_400_000).toISOString() : undefined;
  const lift = useLoaded(() => {
    const params = { path: { name: collection }, query: { from } };
    return read<Schemas["LiftOut"]>(engram.api.GET("/collections/{name}/lift", { params }));
  }, [collection, days]);
  return (
    <div class="stack">
      <label class="field inline">
        <span>Queries of</span>
        <select value={days} onChange={(event) => setDays(event.currentTarget.value)}>
          <option value="">all time</option>
          <option value="1">the last day</option>
          <option value="7">the last week</option>
          <option value="30">the last 30 days</option>
        </select>
      </label>
      <Await of={lift}>
        {(data) =>
          data.arms.every((arm) => arm.queries === 0) ? (
            <Empty title="No query in this time" />
          ) : (
            <Panel title="Arms side by side" note={data.baseline ? `Compared with ${data.baseline}; 95 % intervals` : "No experiment runs, so there is nothing to compare with."}>
              <Table
                class="lift"
                rows={data.arms}
                by={(arm) => arm.arm ?? ""}
                columns={[
                  { title: "Arm", heads: true, cell: (arm) => arm.arm ?? <span class="quiet">no arm</span> },
                  { title: "Queries", class: "number", cell: (arm) => <>{arm.queries} <span class="quiet">{counted(arm.judged, "judged", "judged")}</span></> },
                  ...FIGURES.map(([name, title, share]) => ({ title, cell: (arm: Schemas["ArmLiftOut"]) => <Mean of={arm[name]} share={share} /> })),
                  { title: "Median", class: "number", cell: (arm) => (arm.median_total_ms === null ? "" : `${Math.round(arm.median_total_ms)} ms`) },
                ]}
              />
            </Panel>
          )
        }
      </Await>
    </div>
  );
}

function Mean({ of, share }: { of: Schemas["FigureOut"]; share: boolean }) {
  if (of.mean === null) return <span class="quiet">–</span>;
  const { difference } = of;
  const sure = difference !== null && difference.low !== null && difference.high !== null;
  const tone = share && sure && (difference?.low ?? 0) > 0 ? "good" : share && sure && (difference?.high ?? 0) < 0 ? "bad" : "";
  return (
    <>
      <span class="measure">
        {share && <Bar value={of.mean} />} <strong class="figure">{share ? percent(of.mean) : figure(of.mean)}</strong>
      </span>
      {difference && (
        <span class={`badge figure ${tone}`}>
          {signed(difference.value)}
          {sure && ` (${signed(difference.low ?? 0)} to ${signed(difference.high ?? 0)})`}
        </span>
      )}
    </>
  );
}
