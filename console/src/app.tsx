/** The frame around every page: who asks, of which collection, and where one can go. */

import type { FunctionComponent } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";

import mark from "./mark.svg";
import { type Access, AccessForm, personOf, useAccess } from "./parts/access";
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
import { connect, key, read, type Schemas } from "./service";
import { address, allowed, CHOSEN, here, names, SharedState, usePlace, type Scope, type Shared } from "./state";

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

const THEME = "engram.theme";

export function App() {
  const access = useAccess();
  const { me, error } = access;
  if (me !== null) return <Inside me={me} leave={access.leave} />;
  return (
    <main class="gate stack">
      {access.isWanted ? (
        <>
          <h1 class="brand" style={{ padding: 0 }}>
            <img src={mark} alt="" /> Engram
          </h1>
          <AccessForm access={access} />
        </>
      ) : error === undefined ? (
        <Waiting what="Looking for the service" />
      ) : (
        <Problem error={error} again={() => void access.enter()} />
      )}
    </main>
  );
}

interface InsideProps {
  me: Schemas["WhoOut"];
  leave: Access["leave"];
}

function Inside({ me, leave }: InsideProps) {
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

function Foot({ me, leave }: { me: Schemas["WhoOut"]; leave: Access["leave"] }) {
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
        You are <strong>{personOf(me)}</strong>
        {leave && (
          <button type="button" class="plain" onClick={() => void leave()}>
            {key.get() ? "Forget key" : "Log out"}
          </button>
        )}
      </span>
      <a href="docs">API documentation</a>
    </footer>
  );
}
