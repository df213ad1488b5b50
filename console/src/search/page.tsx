/** The page that people search on. The form is in the page itself; all that follows it is shown here. */

import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { AccessForm, personOf, useAccess } from "../parts/access";
import { connect, EngramError, key, type Schemas } from "../service";
import { allowed, CHOSEN, names } from "../state";
import { addressOf, type Filter, type Search, searchHere } from "./address";
import { Facets } from "./facets";
import { isInsufficient, isLikely, sayLikelihood } from "./likelihood";
import { boxOf, fit } from "./question_box";
import { Missing } from "./rating";
import { forgetOthers } from "./ratings";
import { Result } from "./result";
import { fill, sayFailure, words } from "./words";

const TOP_K = 5;
/** Collections that are offered in the place of one that is not there. */
const PLACES = 8;
/** From this time on the page says that an answer takes long. */
const LONG_MS = 4_000;

interface Failed {
  error: unknown;
  again: () => Promise<void>;
}

export function SearchPage({ form }: { form: HTMLFormElement }) {
  const access = useAccess();
  const [collections, setCollections] = useState<string[] | null>(null);
  const [search, setSearch] = useState<Search>(searchHere);
  const [answer, setAnswer] = useState<Schemas["QueryOut"] | null>(null);
  const [failed, setFailed] = useState<Failed | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  /** Whether somebody sent the form without a question. */
  const [isEmpty, setIsEmpty] = useState(false);
  /** Number of the latest question; answers to earlier ones are dropped. */
  const latest = useRef(0);
  const { me } = access;
  const collection = search.collection ?? chooseCollection(me, collections);
  const engram = useMemo(() => (collection === null ? null : connect(collection)), [collection, key.get()]);

  /** Has the focus when what had it goes. */
  const status = useRef<HTMLParagraphElement>(null);
  const isWanted = useRef(false);
  useEffect(() => {
    if (isWanted.current && me !== null) boxOf(form).focus();
    isWanted.current = access.isWanted;
  }, [access.isWanted, me]);
  const list = useCallback(async () => {
    if (me === null) return;
    forgetOthers(me.name);
    try {
      setCollections((await names(me)).filter((name) => allowed(me, "query", name)));
      setFailed((failure) => (failure?.again === list ? null : failure)); // a question's stays
    } catch (error) {
      setFailed({ error, again: list });
    }
  }, [me]);
  useEffect(() => void list(), [list]);

  const go = (part: Partial<Search>) => {
    const next = { ...search, collection, ...part };
    history.pushState(null, "", addressOf(next));
    setSearch(next);
  };
  const lead = (part: Partial<Search>) => {
    go(part);
    status.current?.focus();
  };
  useEffect(() => {
    const lookForKey = (event: KeyboardEvent) => {
      if (event.key !== "/" || (event.target as Element).matches("input, textarea, select")) return;
      event.preventDefault();
      const box = boxOf(form);
      box.focus(); // which brings it into sight
      box.select();
    };
    addEventListener("keydown", lookForKey);
    return () => removeEventListener("keydown", lookForKey);
  }, []);
  // A question may follow at once on the choice of a collection.
  useLayoutEffect(() => {
    const submit = (event: Event) => {
      event.preventDefault();
      const question = boxOf(form).value.trim().replace(/\s*\n\s*/g, " ");
      setIsEmpty(question === "");
      go({ question });
    };
    form.noValidate = true; // the page says it itself
    form.addEventListener("submit", submit);
    return () => form.removeEventListener("submit", submit);
  });
  useEffect(() => {
    const moved = () => setSearch(searchHere());
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, []);

  const ask = useCallback(async () => {
    const turn = ++latest.current;
    if (engram === null || !search.question) {
      setAnswer(null);
      setIsBusy(false);
      return;
    }
    setIsBusy(true);
    setFailed(null);
    try {
      const found = await engram.query(search.question, {
        top_k: TOP_K,
        include: ["sentences", "context", "sufficiency_level"],
        ...(Object.keys(search.filter).length > 0 ? { filter: search.filter } : {}),
      });
      if (turn === latest.current) setAnswer(found);
    } catch (error) {
      if (turn !== latest.current) return;
      setAnswer(null);
      if (!(error instanceof EngramError && error.status === 401)) setFailed({ error, again: ask });
    }
    setIsBusy(false);
  }, [engram, search]);
  useEffect(() => {
    const box = boxOf(form);
    if (search.question) box.value = search.question;
    fit(box);
    const title = collection === null ? words.search : `${words.place} ${collection}`;
    const heading = document.querySelector("h1");
    if (heading !== null) heading.textContent = title;
    document.title = search.question ? `${search.question} – ${title}` : title;
    if (collection !== null) {
      localStorage.setItem(CHOSEN, collection);
      // Whoever is sent the address may have searched elsewhere last.
      if (search.question) history.replaceState(null, "", addressOf({ ...search, collection }));
    }
    void ask();
  }, [ask]);

  const leave = async () => {
    setAnswer(null);
    await access.leave?.();
  };
  const mayJudge = me !== null && collection !== null && allowed(me, "judge", collection);
  const mayCount = me !== null && collection !== null && allowed(me, "read", collection);
  return (
    <div class="stack">
      {access.isWanted && <AccessForm access={access} />}
      {!access.isWanted && access.error !== undefined && <Failure error={access.error} again={access.enter} />}
      {collections !== null && collections.length > 1 && (
        <label>
          {words.place}
          <select value={collection ?? ""} onChange={(event) => go({ collection: event.currentTarget.value, filter: {} })}>
            {collections.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      )}
      {collections?.length === 0 && collection !== null && (
        <label>
          {words.place}
          <input value={collection} onChange={(event) => go({ collection: event.currentTarget.value.trim() || null, filter: {} })} />
        </label>
      )}
      {collections !== null && collection === null && <p class="panel">{words.nothing}</p>}
      {engram !== null && mayCount && search.question && (
        <Facets engram={engram} answer={answer} filter={search.filter} onChoose={(filter: Filter) => go({ filter })} />
      )}
      <p role="status" ref={status} tabIndex={-1}>{isBusy ? <Waiting key={latest.current} /> : answer ? sayLikelihood(answer) : isEmpty && words.needed}</p>
      {failed !== null && <Failure {...failed} places={collections ?? []} choose={(name) => lead({ collection: name, filter: {} })} />}
      {answer && engram && !isBusy && (
        <ol class="stack" aria-label={words.results}>
          {answer.passages.map((passage) => (
            <li key={`${answer.query_id} ${passage.passage_id}`}>
              <Result engram={engram} answer={answer} passage={passage} mayJudge={mayJudge} isMarked={!isInsufficient(answer)} />
            </li>
          ))}
        </ol>
      )}
      {answer && engram && !isBusy && mayJudge && !isLikely(answer) && (
        <Missing key={answer.query_id} engram={engram} answer={answer} />
      )}
      {me !== null && access.leave && (
        <footer class="row quiet">
          <span>{fill(words.person, personOf(me))}</span>
          <button type="button" class="plain" onClick={() => void leave()}>
            {key.get() === undefined ? words.logOut : words.forgetKey}
          </button>
        </footer>
      )}
    </div>
  );
}

/** The collection that was searched last, or the first; `default` for somebody who may search all and list none. */
function chooseCollection(me: Schemas["WhoOut"] | null, collections: readonly string[] | null): string | null {
  if (me === null || collections === null) return null;
  const last = localStorage.getItem(CHOSEN);
  if (last !== null && collections.includes(last)) return last;
  return collections[0] ?? (allowed(me, "query", null) ? "default" : null);
}

function Waiting() {
  const [isLong, setIsLong] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setIsLong(true), LONG_MS);
    return () => clearTimeout(timer);
  }, []);
  return <>{isLong ? words.slow : words.searching}</>;
}

/** What failed, with what can be done about it: another place for one that is not there, else to try again. */
function Failure({ error, again, places = [], choose }: Failed & { places?: readonly string[]; choose?: (name: string) => void }) {
  const isElsewhere = choose !== undefined && places.length > 0 && error instanceof EngramError && error.status === 404;
  return (
    <div class="panel row bad" role="alert">
      <span>{sayFailure(error)}</span>
      {isElsewhere && <span>{words.place}</span>}
      {isElsewhere ? (
        places.slice(0, PLACES).map((name) => (
          <button key={name} type="button" onClick={() => choose(name)}>
            {name}
          </button>
        ))
      ) : (
        <button type="button" onClick={() => void again()}>
          {words.again}
        </button>
      )}
    </div>
  );
}
