/** The frame around every page: who asks, of which collection, and where one can go. */

import type { FunctionComponent } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";

import mark from "./mark.svg";
import { answerAddress, latestAnswer } from "./parts/answer_state";
import { Choice, Problem, Waiting } from "./parts/basic";
import { Icon, type IconName } from "./parts/icons";
import { Ask } from "./pages/ask";
import { Collections } from "./pages/collections";
import { Facts } from "./pages/facts";
import { Health } from "./pages/health";
import { Keys } from "./pages/keys";
import { Learned } from "./pages/learned";
import { Sessions } from "./pages/sessions";
import { Why } from "./pages/why";
import { connect, EngramError, key, read, REFUSED, type Schemas } from "./service";
import { address, allowed, here, names, SharedState, usePlace, type Scope, type Shared } from "./state";

interface Page {
  name: IconName;
  title: string;
  needs: Scope | null;
  everywhere?: boolean;
  wing?: string;
  shows: FunctionComponent;
}

/** In the order of the navigation. A page that needs what the key does not allow, or a wing that is off, is not there. */
const PAGES: readonly Page[] = [
  { name: "ask", title: "Ask", needs: "query", shows: Ask },
  { name: "why", title: "Why", needs: "query", wing: "why", shows: Why },
  { name: "learned", title: "What it learned", needs: "audit", shows: Learned },
  { name: "sessions", title: "Sessions", needs: "query", wing: "sessions", shows: Sessions },
  { name: "facts", title: "Facts", needs: "query", wing: "facts", shows: Facts },
  { name: "collections", title: "Collections", needs: "read", shows: Collections },
  { name: "health", title: "Health", needs: null, shows: Health },
  { name: "keys", title: "Keys", needs: "admin", everywhere: true, shows: Keys },
];

const CHOSEN = "engram.collection";
const THEME = "engram.theme";

export function App() {
  const [me, setMe] = useState<Schemas["WhoOut"] | null>(null);
  const [error, setError] = useState<unknown>();
  const [wanted, setWanted] = useState(false);
  const enter = useCallback(async () => {
    setError(undefined);
    try {
      setMe(await read<Schemas["WhoOut"]>(connect("default").api.GET("/access/me")));
      setWanted(false);
    } catch (refused) {
      setWanted(refused instanceof EngramError && refused.status === 401);
      setError(key.get() || !(refused instanceof EngramError) || refused.status !== 401 ? refused : undefined);
    }
  }, []);
  useEffect(() => void enter(), []);
  if (me !== null) {
    const again = () => {
      setMe(null);
      void enter();
    };
    const leave = () => {
      key.set("");
      again();
    };
    return <Inside me={me} leave={leave} refused={again} />;
  }
  if (wanted) return <Gate error={error} enter={enter} />;
  return <main class="gate">{error === undefined ? <Waiting what="Looking for the service" /> : <Problem error={error} again={() => void enter()} />}</main>;
}

function Gate({ error, enter }: { error: unknown; enter: () => Promise<void> }) {
  const [value, setValue] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    key.set(value.trim());
    void enter();
  };
  return (
    <main class="gate">
      <form class="panel stack" onSubmit={submit}>
        <h1 class="brand" style={{ padding: 0 }}>
          <img src={mark} alt="" /> Engram
        </h1>
        <p>This service asks for an access key.</p>
        <label class="field">
          <span>Access key</span>
          <input
            type="password"
            autocomplete="off"
            spellcheck={false}
            placeholder="engram_…"
            value={value}
            onInput={(event) => setValue(event.currentTarget.value)}
          />
        </label>
        <Problem error={error} />
        <button class="main" disabled={value.trim() === ""}>
          Open
        </button>
        <p class="quiet">It is kept in this tab until you close it, and sent to this service only.</p>
      </form>
    </main>
  );
}

interface InsideProps {
  me: Schemas["WhoOut"];
  leave: () => void;
  /** The key does not count any more. */
  refused: () => void;
}

function Inside({ me, leave, refused }: InsideProps) {
  const place = usePlace();
  const [collections, setCollections] = useState<string[] | null>(null);
  const [ready, setReady] = useState<Schemas["ReadinessOut"] | null>(null);
  const [chosen, setChosen] = useState(localStorage.getItem(CHOSEN) ?? "");
  const [isFolded, setIsFolded] = useState(true);
  const main = useRef<HTMLElement>(null);
  const refresh = useCallback(async () => {
    setCollections(await names(me).catch(() => []));
    setReady(await read<Schemas["ReadinessOut"]>(connect("default").api.GET("/readyz")).catch(() => null));
  }, [me]);
  useEffect(() => void refresh(), [refresh]);
  useEffect(() => {
    addEventListener(REFUSED, refused, { once: true });
    return () => removeEventListener(REFUSED, refused);
  }, []);
  const named = place.settings.get("c");
  useEffect(() => {
    if (named) setChosen(named);
    setIsFolded(true);
  }, [place]);
  const collection = named || (collections?.includes(chosen) || !collections?.length ? chosen || "default" : (collections[0] ?? "default"));
  const shared = useMemo<Shared>(
    () => ({
      engram: connect(collection),
      me,
      ready,
      collection,
      collections: collections ?? [],
      choose: (name) => {
        localStorage.setItem(CHOSEN, name);
        setChosen(name);
        location.hash = address(here().page, "", { c: name });
      },
      refresh,
      model: ready?.llm === "configured" && allowed(me, "llm", collection),
      may: (scope, everywhere = false) => allowed(me, scope, everywhere ? null : collection),
      has: (wing) => me.wings.includes(wing),
      signOut: leave,
    }),
    [collection, collections, me, ready, refresh],
  );
  const pages = PAGES.filter(
    ({ needs, everywhere, wing }) => (needs === null || shared.may(needs, everywhere)) && (wing === undefined || shared.has(wing)),
  );
  const page = pages.find((one) => one.name === place.page) ?? pages[0];
  useEffect(() => {
    document.title = page ? `${page.title} · Engram` : "Engram";
  }, [page]);
  if (collections === null) return <main class="gate"><Waiting what="Looking for collections" /></main>;
  return (
    <SharedState value={shared}>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>
        Skip to the page
      </a>
      <div class="frame">
        <div class={isFolded ? "side folded" : "side"}>
          <header class="stack">
            <div class="row top">
              <div class="brand">
                <img src={mark} alt="" /> Engram
              </div>
              <button
                type="button"
                class="fold"
                aria-expanded={!isFolded}
                aria-controls="navigation"
                onClick={() => setIsFolded(!isFolded)}
              >
                <Icon name="menu" /> Menu
              </button>
            </div>
            <Picker shared={shared} />
          </header>
          <nav id="navigation" aria-label="Pages">
            <ul>
              {pages.map((one) => (
                <li key={one.name}>
                  <a href={linkTo(one.name, collection)} aria-current={one === page ? "page" : undefined}>
                    <Icon name={one.name} /> {one.title}
                  </a>
                </li>
              ))}
            </ul>
          </nav>
          <Foot me={me} leave={leave} />
        </div>
        <main id="main" tabIndex={-1} ref={main} key={`${page?.name} ${collection}`}>
          {page ? <page.shows /> : <p>This key allows nothing that the console could show.</p>}
        </main>
      </div>
    </SharedState>
  );
}

/** The address of a page. "Ask" goes back to the answer that was looked at last. */
function linkTo(page: IconName, collection: string): string {
  const answer = page === "ask" ? latestAnswer(collection) : undefined;
  return answer === undefined ? address(page, "", { c: collection }) : answerAddress(answer);
}

function Picker({ shared }: { shared: Shared }) {
  const options = shared.collections.includes(shared.collection) ? shared.collections : [shared.collection, ...shared.collections];
  return (
    <label class="field">
      <span>Collection</span>
      <select value={shared.collection} onChange={(event) => shared.choose(event.currentTarget.value)}>
        {options.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}

type Theme = "auto" | "light" | "dark";

function Foot({ me, leave }: { me: Schemas["WhoOut"]; leave: () => void }) {
  const [theme, setTheme] = useState<Theme>((localStorage.getItem(THEME) as Theme | null) ?? "auto");
  useEffect(() => {
    localStorage.setItem(THEME, theme);
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    dispatchEvent(new Event("engram-theme"));
  }, [theme]);
  return (
    <footer class="foot">
      <Choice
        quiet
        legend="Theme"
        name="theme"
        value={theme}
        options={[["auto", "Auto"], ["light", "Light"], ["dark", "Dark"]]}
        onChoose={setTheme}
      />
      <span>
        You are <strong>{me.name}</strong>
        {key.get() && (
          <button type="button" class="plain" onClick={leave}>
            Forget key
          </button>
        )}
      </span>
      <a href="docs">API documentation</a>
    </footer>
  );
}
