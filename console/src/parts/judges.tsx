/** Who judges, how they agree with others, and what holds each of them back. */

import { useState } from "preact/hooks";

import { read, type Schemas } from "../service";
import { useLoaded, useShared } from "../state";
import { Await, Bar, counted, Dialog, Empty, figure, Panel, percent, Problem } from "./basic";
import { Table } from "./table";

export function JudgesPart() {
  const { engram, collection, may } = useShared();
  const [asked, setAsked] = useState<Schemas["JudgeOut"] | null>(null);
  const judges = useLoaded(() => {
    const params = { path: { name: collection }, query: { limit: 200 } };
    return read<Schemas["JudgesOut"]>(engram.api.GET("/collections/{name}/judges", { params }));
  }, [collection]);
  return (
    <>
      <Await of={judges}>
        {(data) =>
          data.judges.length === 0 ? (
            <Empty title="No judge yet" />
          ) : (
            <Panel title="Judges" note="A new judge counts little until it agreed often enough with others; caps hold every judge back.">
              <Table
                rows={data.judges}
                by={(one) => one.judge}
                columns={[
                  { title: "Judge", heads: true, cell: (one) => one.judge },
                  { title: "Verdicts", class: "number", cell: (one) => <Given of={one} /> },
                  { title: "Agreement", term: "agreement", class: "figure when", cell: ({ standing }) => <Agreement of={standing} /> },
                  { title: "Weight", term: "standing", class: "measure", cell: (one) => (one.trusted ? "trusted" : <Weight of={one.standing.weight} />) },
                  { title: "Caps", class: "caps", cell: (one) => <Caps of={one} /> },
                  {
                    title: "Noise + / −",
                    term: "noise",
                    class: "number",
                    cell: ({ constants }) => `${figure(constants.observation_noise_positive)} / ${figure(constants.observation_noise_negative)}`,
                  },
                  may("moderate") && {
                    title: "Actions",
                    quiet: true,
                    cell: (one) => (
                      <button type="button" class="small danger" disabled={one.applied + one.pending + one.parked === 0} onClick={() => setAsked(one)}>
                        Revoke all
                      </button>
                    ),
                  },
                ]}
              />
            </Panel>
          )
        }
      </Await>
      {asked && <RevokeAll judge={asked} onClose={() => { setAsked(null); judges.again(); }} />}
    </>
  );
}

function Given({ of }: { of: Schemas["JudgeOut"] }) {
  return (
    <>
      {of.applied}
      {of.pending > 0 && <span class="quiet"> +{of.pending} waiting</span>}
      {of.parked > 0 && <span class="badge bad">{of.parked} parked</span>}
      {of.revoked > 0 && <span class="quiet"> {of.revoked} revoked</span>}
    </>
  );
}

function Agreement({ of: { agreed, disagreed } }: { of: Schemas["StandingOut"] }) {
  const known = agreed + disagreed;
  return known === 0 ? <span class="quiet">none to compare</span> : <>{`${agreed} of ${known}`}</>;
}

function Weight({ of }: { of: number }) {
  return (
    <>
      <Bar value={of} tone={of >= 1 ? "good" : "warm"} /> <span class="figure">{figure(of)}</span>
    </>
  );
}

function Caps({ of: { constants, set } }: { of: Schemas["JudgeOut"] }) {
  const { daily_share, contested_share, daily_weight_verdicts } = constants;
  return (
    <span class="quiet">
      {percent(daily_share)} of a memory a day, {percent(contested_share)} where contested
      {daily_weight_verdicts !== null && `, ${daily_weight_verdicts} verdicts that teach weights`}
      {set.length > 0 && <span class="badge accent">set for it</span>}
    </span>
  );
}

function RevokeAll({ judge, onClose }: { judge: Schemas["JudgeOut"]; onClose: () => void }) {
  const { engram, collection } = useShared();
  const [said, setSaid] = useState("");
  const [error, setError] = useState<unknown>();
  const verdicts = judge.applied + judge.pending + judge.parked;
  const revoke = async () => {
    try {
      const params = { header: { "idempotency-key": crypto.randomUUID() } };
      const body = { collection, judge: judge.judge };
      const job = await read<Schemas["AcceptedJob"]>(engram.api.POST("/feedback/revoke", { params, body }));
      setSaid("Being revoked …");
      const done = await engram.wait(job);
      setSaid(`${counted(done.updated, "verdict")} revoked.`);
    } catch (failed) {
      setError(failed);
    }
  };
  return (
    <Dialog title={`Revoke all verdicts of ${judge.judge}`} onClose={onClose}>
      <p>
        {counted(verdicts, "verdict")} would count no more: what {judge.judge} alone taught is forgotten, and what others taught stands
        as if {judge.judge} had never judged.
      </p>
      <Problem error={error} />
      <div class="row">
        <button type="button" class="danger" disabled={said !== ""} onClick={() => void revoke()}>
          Revoke {counted(verdicts, "verdict")}
        </button>
        <span role="status">{said}</span>
      </div>
    </Dialog>
  );
}
