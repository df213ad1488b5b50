/** Who judges, how they agree with others, and what holds each of them back. */

import { useState } from "preact/hooks";

import { read, type Schemas } from "../service";
import { useLoaded, useShared } from "../state";
import { Await, Bar, counted, Dialog, Empty, figure, Panel, percent, Problem } from "./basic";

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
            <Empty title="Nobody judged yet" />
          ) : (
            <Panel title="Judges" note="A new judge counts little until it agreed often enough with others; caps hold every judge back.">
              <div class="wide">
                <table>
                  <thead>
                    <tr>
                      <th scope="col">Judge</th>
                      <th scope="col" class="number">Verdicts</th>
                      <th scope="col">Agreement</th>
                      <th scope="col">Weight</th>
                      <th scope="col">Caps</th>
                      <th scope="col" class="number">Noise + / −</th>
                      {may("moderate") && (
                        <th scope="col">
                          <span class="hidden">Act</span>
                        </th>
                      )}
                    </tr>
                  </thead>
                  <tbody>
                    {data.judges.map((one) => (
                      <tr key={one.judge}>
                        <th scope="row">{one.judge}</th>
                        <td class="number">
                          {one.applied}
                          {one.pending > 0 && <span class="quiet"> +{one.pending} waiting</span>}
                          {one.parked > 0 && <span class="badge bad">{one.parked} parked</span>}
                          {one.revoked > 0 && <span class="quiet"> {one.revoked} revoked</span>}
                        </td>
                        <td class="figure">
                          {one.standing.agreed} agreed, {one.standing.disagreed} did not
                        </td>
                        <td class="measure">
                          <Bar value={one.standing.weight} tone={one.standing.weight >= 1 ? "good" : "warm"} />{" "}
                          <span class="figure">{figure(one.standing.weight)}</span>
                        </td>
                        <td>
                          <Caps of={one} />
                        </td>
                        <td class="number">
                          {figure(one.constants.observation_noise_positive)} / {figure(one.constants.observation_noise_negative)}
                        </td>
                        {may("moderate") && (
                          <td>
                            <button type="button" class="small danger" disabled={one.applied + one.pending + one.parked === 0} onClick={() => setAsked(one)}>
                              Revoke all
                            </button>
                          </td>
                        )}
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            </Panel>
          )
        }
      </Await>
      {asked && <RevokeAll judge={asked} onClose={() => { setAsked(null); judges.again(); }} />}
    </>
  );
}

function Caps({ of: { constants, set } }: { of: Schemas["JudgeOut"] }) {
  const { daily_share, contested_share, daily_comparisons } = constants;
  return (
    <span class="quiet">
      {percent(daily_share)} of a memory a day, {percent(contested_share)} where contested
      {daily_comparisons !== null && `, ${daily_comparisons} comparisons`}
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
      const job = await read<Schemas["JobAccepted"]>(engram.api.POST("/feedback/revoke", { params, body }));
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
