/** Access keys of one's tenant: made, listed, followed by others, revoked. */

import { useState } from "preact/hooks";

import { Await, Dialog, Empty, Head, moment, Panel, Problem } from "../parts/basic";
import { read, type Schemas } from "../service";
import { type Scope, useLoaded, useShared } from "../state";
import { Table } from "../parts/table";

const SCOPES: readonly (readonly [Scope, string])[] = [
  ["query", "ask"],
  ["read", "read passages"],
  ["ingest", "send passages"],
  ["judge", "give verdicts"],
  ["judge-as", "give verdicts in others' names"],
  ["audit", "see what others did"],
  ["moderate", "revoke what others said"],
  ["vouch", "say that an answer was right, without a check"],
  ["llm", "use the language model"],
  ["act-as", "ask in the name of others"],
  ["admin", "all of these"],
];

type Made = Schemas["IssuedAccessKey"];

export function Keys() {
  const { engram } = useShared();
  const [made, setMade] = useState<Made | null>(null);
  const [error, setError] = useState<unknown>();
  const keys = useLoaded(() => read<Schemas["AccessKeysOut"]>(engram.api.GET("/access/keys", { params: { query: { limit: 1_000 } } })), []);
  const act = async (what: () => Promise<unknown>) => {
    setError(undefined);
    try {
      const done = await what();
      if (done && typeof done === "object" && "key" in done) setMade(done as Made);
      keys.again();
    } catch (failed) {
      setError(failed);
    }
  };
  return (
    <>
      <Head title="Keys">Access keys and their scopes. The page shows a key once, when it is made.</Head>
      <div class="stack">
        <Problem error={error} />
        <Make act={act} />
        <Await of={keys}>
          {(data) =>
            data.keys.length === 0 ? (
              <Empty title="No key yet">On loopback none is needed.</Empty>
            ) : (
              <List keys={data.keys} act={act} />
            )
          }
        </Await>
      </div>
      {made && (
        <Dialog title={`The key of ${made.name}`} onClose={() => setMade(null)}>
          <p>Copy it now; it is stored nowhere and cannot be shown again.</p>
          <input class="code" readOnly aria-label="The key" value={made.key} onFocus={(event) => event.currentTarget.select()} />
        </Dialog>
      )}
    </>
  );
}

type Act = (what: () => Promise<unknown>) => Promise<void>;

function Make({ act }: { act: Act }) {
  const { engram, collections } = useShared();
  const [name, setName] = useState("");
  const [where, setWhere] = useState("*");
  const [scopes, setScopes] = useState<readonly Scope[]>(["query", "judge"]);
  const [days, setDays] = useState("90");
  const [principals, setPrincipals] = useState("");
  const [trusted, setTrusted] = useState(false);
  const make = (event: Event) => {
    event.preventDefault();
    void act(() =>
      read(
        engram.api.POST("/access/keys", {
          body: {
            name,
            scopes: { [where]: [...scopes] },
            days: days ? Number(days) : null,
            principals: principals.split(",").map((one) => one.trim()).filter(Boolean),
            trusted,
          },
        }),
      ),
    );
  };
  const toggle = (scope: Scope) => setScopes(scopes.includes(scope) ? scopes.filter((one) => one !== scope) : [...scopes, scope]);
  return (
    <Panel title="Make a key">
      <form class="stack" onSubmit={make}>
        <div class="fields">
          <label class="field">
            <span>Name</span>
            <input value={name} required onInput={(event) => setName(event.currentTarget.value)} />
          </label>
          <label class="field">
            <span>Collections</span>
            <select value={where} onChange={(event) => setWhere(event.currentTarget.value)}>
              <option value="*">all collections</option>
              {collections.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
          <label class="field">
            <span>Valid for days (empty: no end)</span>
            <input type="number" min={1} value={days} onInput={(event) => setDays(event.currentTarget.value)} />
          </label>
          <label class="field">
            <span>Reads as, among the readers of passages</span>
            <input value={principals} placeholder="user:ana, group:hr" onInput={(event) => setPrincipals(event.currentTarget.value)} />
          </label>
        </div>
        <fieldset class="scopes">
          <legend class="label">Scopes</legend>
          {SCOPES.map(([scope, says]) => (
            <label key={scope} class="check">
              <input type="checkbox" checked={scopes.includes(scope)} onChange={() => toggle(scope)} />
              <span>
                {scope} <span class="quiet">{says}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <label class="check">
          <input type="checkbox" checked={trusted} onChange={() => setTrusted(!trusted)} />
          <span>
            trusted <span class="quiet">its verdicts count in full from the first on</span>
          </span>
        </label>
        <div>
          <button class="main" disabled={name.trim() === "" || scopes.length === 0}>
            Make key
          </button>
        </div>
      </form>
    </Panel>
  );
}

function List({ keys, act }: { keys: readonly Schemas["AccessKeyOut"][]; act: Act }) {
  const { engram } = useShared();
  const rotate = (id: number) => act(() => read(engram.api.POST("/access/keys/{key_id}/rotate", { params: { path: { key_id: id } }, body: { grace_seconds: 3_600 } })));
  const revoke = (id: number) => act(async () => void (await read(engram.api.DELETE("/access/keys/{key_id}", { params: { path: { key_id: id } } }))));
  return (
    <Panel title="Keys" note="The oldest first">
      <Table
        rows={keys}
        by={(one) => one.key_id}
        columns={[
          { title: "Name", heads: true, cell: (one) => one.name },
          { title: "Ends in", class: "code", cell: (one) => `…${one.ends_in}` },
          { title: "Scopes", cell: (one) => <May of={one.scopes} /> },
          { title: "Judge", cell: (one) => <>{one.judge} {one.trusted && <span class="badge good">trusted</span>}</> },
          { title: "Reads as", cell: (one) => one.principals.join(", ") },
          { title: "Valid until", class: "when", cell: (one) => (one.revoked_at ? <span class="badge">revoked</span> : one.expires_at ? moment(one.expires_at) : "for ever") },
          {
            title: "Actions",
            quiet: true,
            cell: (one) =>
              !one.revoked_at && (
                <span class="row">
                  <button type="button" class="small" onClick={() => void rotate(one.key_id)} aria-label={`Rotate the key of ${one.name}`}>
                    Rotate
                  </button>
                  <button type="button" class="small danger" onClick={() => void revoke(one.key_id)} aria-label={`Revoke the key of ${one.name}`}>
                    Revoke
                  </button>
                </span>
              ),
          },
        ]}
      />
    </Panel>
  );
}

function May({ of }: { of: Record<string, string[]> }) {
  return (
    <>
      {Object.entries(of).map(([where, scopes]) => (
        <div key={where}>
          {scopes.join(", ")} <span class="quiet">on {where === "*" ? "all" : where}</span>
        </div>
      ))}
    </>
  );
}
