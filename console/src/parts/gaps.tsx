/** Needs that the collection did not meet: how often and since when, what is nearest, and what happened later. */

import { useState } from "preact/hooks";

import { read, type Schemas } from "../service";
import { address, useLoaded, useShared } from "../state";
import { Await, counted, Empty, moment, Panel, percent } from "./basic";
import { Table } from "./table";

export function GapsPart() {
  const { engram, collection } = useShared();
  const [days, setDays] = useState("30");
  const gaps = useLoaded(() => {
    const params = { path: { name: collection }, query: { days: Number(days) } };
    return read<Schemas["GapsOut"]>(engram.api.GET("/collections/{name}/gaps", { params }));
  }, [collection, days]);
  return (
    <div class="stack">
      <label class="field inline">
        <span>Queries of</span>
        <select value={days} onChange={(event) => setDays(event.currentTarget.value)}>
          <option value="7">the last week</option>
          <option value="30">the last 30 days</option>
          <option value="365">the last year</option>
        </select>
      </label>
      <Await of={gaps}>
        {(data) =>
          data.gaps.length === 0 ? (
            <Empty title="Nothing is missing">
              {data.queries === 0 ? "No question was asked in this time." : `All ${counted(data.queries, "query", "queries")} of this time were answered.`}
            </Empty>
          ) : (
            <Panel title="Not answered" note={`Below ${percent(data.level)} sufficiency, or judged as not enough; of ${counted(data.queries, "query", "queries")}`}>
              <Table
                rows={data.gaps}
                by={(gap) => gap.last_query_id}
                columns={[
                  { title: "Question", heads: true, cell: (gap) => <Question of={gap} /> },
                  { title: "Queries", class: "number", cell: (gap) => <>{gap.queries} <span class="quiet">{counted(gap.people, "caller")}</span></> },
                  { title: "First and last", cell: (gap) => <span class="when">{moment(gap.first_at)}<br />{moment(gap.last_at)}</span> },
                  { title: "Nearest documents", cell: (gap) => gap.documents.map((document) => <div key={document}>{document}</div>) },
                  { title: "Later", cell: (gap) => <Later of={gap.later} /> },
                ]}
              />
            </Panel>
          )
        }
      </Await>
    </div>
  );
}

function Question({ of: gap }: { of: Schemas["UnmetNeedOut"] }) {
  const { collection } = useShared();
  return (
    <>
      <a href={address("ask", gap.last_query_id, { c: collection, q: gap.question })}>{gap.question}</a>
      {gap.wordings.map((wording) => (
        <div key={wording} class="quiet">
          {wording}
        </div>
      ))}
      {gap.denials > 0 && <div class="quiet">{counted(gap.denials, "verdict")} against its answers</div>}
    </>
  );
}

function Later({ of: later }: { of: Schemas["LaterOut"] }) {
  const { collection } = useShared();
  return (
    <>
      {later.answered_at !== null && later.query_id !== null ? (
        <a href={address("ask", later.query_id, { c: collection })}>Answered {moment(later.answered_at)}</a>
      ) : (
        <span class="quiet">not answered yet</span>
      )}
      {later.documents.length > 0 && <div>after {later.documents.join(", ")}</div>}
      {later.feedback_id !== null && (
        <div>
          <a href={address("learned", String(later.feedback_id))}>Verdict {later.feedback_id}</a> names what helps
        </div>
      )}
    </>
  );
}
