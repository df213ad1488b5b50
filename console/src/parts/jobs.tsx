/** A collection's jobs, watched for as long as one is open. */

import { useEffect, useRef, useState } from "preact/hooks";

import { read, type Schemas } from "../service";
import { useLoaded, useShared } from "../state";
import { Await, Bar, Dialog, moment, Panel, Problem } from "./basic";
import { progress } from "./ingest";
import { Table } from "./table";

const OPEN = new Set(["receiving", "queued", "running"]);
const TONES: Record<string, string> = { succeeded: "good", failed: "bad", running: "accent", queued: "warm", receiving: "warm" };

export function Jobs({ turn, onDone }: { turn: number; onDone: () => void }) {
  const { engram, collection, may } = useShared();
  const [error, setError] = useState<unknown>();
  const [open, setOpen] = useState<Schemas["JobOut"] | null>(null);
  const jobs = useLoaded(() => {
    const params = { path: { name: collection }, query: { limit: 20 } };
    return read<Schemas["JobsOut"]>(engram.api.GET("/collections/{name}/jobs", { params }));
  }, [collection, turn]);
  const busy = jobs.data?.jobs.some((job) => OPEN.has(job.status)) ?? false;
  const before = useRef(false);
  useEffect(() => {
    if (before.current && !busy) onDone();
    before.current = busy;
    if (!busy) return;
    const timer = setInterval(jobs.again, 800);
    return () => clearInterval(timer);
  }, [busy]);
  const cancel = async (job: Schemas["JobOut"]) => {
    try {
      await read(engram.api.POST("/jobs/{job_id}/cancel", { params: { path: { job_id: job.job_id }, query: { collection } } }));
      jobs.again();
    } catch (failed) {
      setError(failed);
    }
  };
  return (
    <Await of={jobs}>
      {(data) =>
        data.jobs.length === 0 ? null : (
          <Panel title="Jobs" note="The latest first">
            <Problem error={error} />
            <Table
              rows={data.jobs}
              by={(job) => job.job_id}
              columns={[
                { title: "Job", cell: (job) => <>{job.kind} <span class="quiet code">{job.job_id.slice(-8)}</span></> },
                { title: "Started", class: "when", cell: (job) => moment(job.created_at) },
                {
                  title: "State",
                  cell: (job) => (
                    <>
                      <span class={`badge ${TONES[job.status] ?? ""}`}>{job.status}</span>
                      {job.error && <p class="quiet">{job.error}</p>}
                    </>
                  ),
                },
                {
                  title: "Progress",
                  class: "measure",
                  cell: (job) => (
                    <>
                      {OPEN.has(job.status) && job.received > 0 && <Bar value={job.received - job.waiting} most={job.received} />}
                      <span class="figure">{progress(job)}</span>
                    </>
                  ),
                },
                {
                  title: "Actions",
                  quiet: true,
                  cell: (job) => (
                    <>
                      {OPEN.has(job.status) && may("admin") && (
                        <button type="button" class="small" disabled={job.cancel_requested_at !== null} onClick={() => void cancel(job)}>
                          Cancel
                        </button>
                      )}
                      {job.rejected > 0 && (
                        <button type="button" class="small" onClick={() => setOpen(job)}>
                          Rejected lines
                        </button>
                      )}
                    </>
                  ),
                },
              ]}
            />
            {open && <Rejected job={open} onClose={() => setOpen(null)} />}
          </Panel>
        )
      }
    </Await>
  );
}

function Rejected({ job, onClose }: { job: Schemas["JobOut"]; onClose: () => void }) {
  const { engram, collection } = useShared();
  const detail = useLoaded(() => {
    const params = { path: { job_id: job.job_id }, query: { collection, errors_limit: 100 } };
    return read<Schemas["JobDetail"]>(engram.api.GET("/jobs/{job_id}", { params }));
  }, [job.job_id]);
  return (
    <Dialog title="Rejected lines" onClose={onClose}>
      <Await of={detail}>
        {(data) => (
          <ul class="stack close">
            {data.errors.map((one) => (
              <li key={one.line}>
                <strong>Line {one.line}</strong> {one.reason}
              </li>
            ))}
          </ul>
        )}
      </Await>
    </Dialog>
  );
}
