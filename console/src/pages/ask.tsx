/** Ask, say what helped, and see what that changed. */

import { useState } from "preact/hooks";

import { type Arm, type Asked, blank, type Mark, remember, remembered, SHOWN } from "../parts/asking";
import { Choice, counted, Empty, figure, Head, Panel, Problem, Waiting } from "../parts/basic";
import { ChangedView } from "../parts/changed";
import { Gauge } from "../parts/gauge";
import { Icon } from "../parts/icons";
import { Judging } from "../parts/judging";
import { numbers, place, Words } from "../parts/words";
import type { Schemas } from "../service";
import { address, useShared } from "../state";

export function Ask() {
  const { engram, collection, may, model } = useShared();
  const [asked, setAsked] = useState<Asked>(() => remembered(collection));
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const change = (part: Partial<Asked>) =>
    setAsked((before) => {
      const now = { ...before, ...part };
      remember(now);
      return now;
    });

  const ask = async ({ arm, worded }: Pick<Asked, "arm" | "worded"> = asked) => {
    const question = asked.question.trim();
    if (question === "" || busy) return;
    setBusy(true);
    setError(undefined);
    try {
      const how = { arm, top_k: SHOWN, include: ["sentences" as const, "trace" as const] };
      const words = worded && model ? await engram.answer(question, how) : null;
      const answer = words?.retrieval ?? (await engram.query(question, how));
      const again = asked.answer !== null && asked.answer.query === question;
      const earlier = again && asked.answer ? ranks(asked.answer) : null;
      change({ ...blank(collection), question, arm, worded, words, answer, earlier, changed: again ? asked.changed : null });
    } catch (failed) {
      setError(failed);
    } finally {
      setBusy(false);
    }
  };
  const mark = (sentence: number, as: Mark) => {
    const marks = new Map(asked.marks);
    if (marks.get(sentence) === as) marks.delete(sentence);
    else marks.set(sentence, as);
    change({ marks });
  };
  const turn = (part: Partial<Arm>) => {
    const arm = { ...asked.arm, ...part };
    change({ arm });
    if (asked.answer !== null) void ask({ ...asked, arm });
  };
  const word = (worded: boolean) => {
    change({ worded, words: null });
    if (worded && asked.answer !== null) void ask({ ...asked, worded });
  };

  return (
    <>
      <Head title="Ask">
        Mark what helped and what did not; the next question of its kind finds its evidence sooner.
      </Head>
      <div class="stack">
        <form
          class="panel stack"
          role="search"
          onSubmit={(event) => {
            event.preventDefault();
            void ask();
          }}
        >
          <div class="question">
            <input
              type="text"
              aria-label="Question"
              placeholder={`Ask “${collection}” a question`}
              value={asked.question}
              autocomplete="off"
              maxLength={10_000}
              onInput={(event) => change({ question: event.currentTarget.value })}
            />
            <button class="main" disabled={busy || asked.question.trim() === ""}>
              {asked.answer?.query === asked.question.trim() ? "Ask again" : "Ask"}
            </button>
          </div>
          <div class="row arms">
            <Choice
              legend="Memory"
              name="memory"
              value={asked.arm.memory}
              options={[["read", "On"], ["off", "Off"]]}
              onChoose={(memory) => turn({ memory })}
            />
            <Choice
              legend="Profile"
              name="profile"
              value={asked.arm.profile}
              options={[["default", "Default"], ["paper", "Paper"]]}
              onChoose={(profile) => turn({ profile })}
            />
            {model && (
              <Choice
                legend="Answer"
                name="worded"
                value={asked.worded ? "words" : "passages"}
                options={[["passages", "Passages"], ["words", "In words"]]}
                onChoose={(as) => word(as === "words")}
              />
            )}
            {busy && <Waiting what="Asking" />}
          </div>
        </form>
        <Problem error={error} />
        {asked.answer === null ? (
          <Empty title="No question yet">
            The answer shows each passage with the sentences that speak for it, and how surely all the evidence is there.
          </Empty>
        ) : (
          <>
          {asked.words && <Words words={asked.words} />}
          {asked.changed && <ChangedView asked={asked} changed={asked.changed} change={change} />}
          <div class="two">
            <Answer answer={asked.answer} cited={numbers(asked.words)} earlier={asked.earlier} marks={asked.marks} mark={may("judge") ? mark : null} />
            <div class="stack beside">
              <Panel title="Is it enough?" note={`${counted(asked.answer.hops, "hop")}, ${Math.round(asked.answer.timings.total_ms)} ms`}>
                <Gauge probability={asked.answer.sufficiency} />
                {asked.answer.warnings?.map((warning) => <p class="quiet">{warning.detail}</p>)}
              </Panel>
              {may("judge") && <Judging asked={asked} change={change} />}
            </div>
          </div>
          </>
        )}
      </div>
    </>
  );
}

const ranks = (answer: Schemas["QueryOut"]) =>
  new Map(answer.passages.map((passage, at) => [passage.passage_id, at + 1]));

interface AnswerProps {
  answer: Schemas["QueryOut"];
  /** Sentences that an answer in words rests on, each with its number there. */
  cited: ReadonlyMap<number, number>;
  earlier: Map<string, number> | null;
  marks: Map<number, Mark>;
  mark: ((sentence: number, as: Mark) => void) | null;
}

function Answer({ answer, cited, earlier, marks, mark }: AnswerProps) {
  if (answer.passages.length === 0) {
    return <Empty title="Nothing was found">Another wording may help, or a collection that holds more.</Empty>;
  }
  return (
    <section aria-label="Answer" class="stack close">
      <div class="row" style={{ justifyContent: "space-between" }}>
        <h2>{counted(answer.passages.length, "passage")}, best first</h2>
        <a href={address("why", answer.query_id, { c: answer.collection })}>Why this order?</a>
      </div>
      <ol class="stack close">
        {answer.passages.map((passage, at) => (
          <li key={passage.passage_id}>
            <Passage
              passage={passage}
              rank={at + 1}
              before={earlier && (earlier.get(passage.passage_id) ?? null)}
              fresh={earlier !== null}
              cited={cited}
              marks={marks}
              mark={mark}
            />
          </li>
        ))}
      </ol>
    </section>
  );
}

interface PassageProps {
  passage: Schemas["PassageHit"];
  rank: number;
  before: number | null;
  fresh: boolean;
  cited: AnswerProps["cited"];
  marks: Map<number, Mark>;
  mark: AnswerProps["mark"];
}

function Passage({ passage, rank, before, fresh, cited, marks, mark }: PassageProps) {
  const strongest = Math.max(...passage.sentences.map((one) => one.score ?? 0));
  return (
    <article class="passage">
      <span class="rank figure" aria-label={`Rank ${rank}`}>
        {rank}
      </span>
      <div>
        <header class="row">
          <h3>{passage.title ?? passage.passage_id}</h3>
          {fresh && before !== rank && <Moved before={before} rank={rank} />}
          {passage.explored && <span class="badge accent">explored</span>}
          <span class="quiet figure" title="Score">
            {figure(passage.score)}
          </span>
        </header>
        <ul class="sentences">
          {passage.sentences.map((one) => (
            <li key={one.sentence_id} id={place(one.sentence_id)} tabIndex={cited.has(one.sentence_id) ? -1 : undefined} class={marks.get(one.sentence_id) ?? ""}>
              <span>
                {one.score === null ? (
                  one.text
                ) : (
                  <mark class={one.score >= strongest ? "strong" : ""} title={`Selected in hop ${one.hops.join(", ") || "recall"}`}>
                    {one.text}
                  </mark>
                )}
                {cited.has(one.sentence_id) && <sup class="figure" aria-label={`Source ${cited.get(one.sentence_id)} of the answer`} role="img">{cited.get(one.sentence_id)}</sup>}
              </span>
              {mark && (
                <span class="thumbs">
                  <Thumb as="supporting" sentence={one} marks={marks} mark={mark} />
                  <Thumb as="rejected" sentence={one} marks={marks} mark={mark} />
                </span>
              )}
            </li>
          ))}
        </ul>
        {passage.duplicates && passage.duplicates.length > 0 && <Duplicates duplicates={passage.duplicates} />}
      </div>
    </article>
  );
}

function Duplicates({ duplicates }: { duplicates: Schemas["DuplicateOut"][] }) {
  return (
    <p class="quiet">
      Nearly the same text: {duplicates.map((one) => (one.title ? `${one.title} (${one.passage_id})` : one.passage_id)).join(", ")}
    </p>
  );
}

function Moved({ before, rank }: { before: number | null; rank: number }) {
  if (before === null) return <span class="badge good">new in the first {SHOWN}</span>;
  return before > rank ? (
    <span class="badge good">▲ was {before}</span>
  ) : (
    <span class="badge bad">▼ was {before}</span>
  );
}

interface ThumbProps {
  as: Mark;
  sentence: Schemas["SentenceOut"];
  marks: Map<number, Mark>;
  mark: (sentence: number, as: Mark) => void;
}

function Thumb({ as, sentence, marks, mark }: ThumbProps) {
  const label = as === "supporting" ? "Helped" : "Did not help";
  return (
    <button
      type="button"
      class={`thumb ${as}`}
      aria-pressed={marks.get(sentence.sentence_id) === as}
      aria-label={`${label}: ${sentence.text}`}
      title={label}
      onClick={() => mark(sentence.sentence_id, as)}
    >
      <Icon name={as === "supporting" ? "up" : "down"} />
    </button>
  );
}
