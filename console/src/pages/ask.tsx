/** The page that answers a question and takes verdicts on the answer. Its address says which question or answer it shows. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";

import {
  type AnswerState,
  answerAddress,
  answerById,
  type Mark,
  newAnswer,
  NO_THUMBS,
  ranksOf,
  remember,
  rememberWords,
  storedQuestion,
  update,
  wordsOf,
} from "../parts/answer_state";
import { AnswerView } from "../parts/answer_view";
import { counted, Empty, Head, Panel, Problem } from "../parts/basic";
import { Gauge } from "../parts/gauge";
import { type Question, questionFrom, queryBody, settingsOf } from "../parts/question";
import { QuestionForm } from "../parts/question_form";
import { SampleQuestions } from "../parts/sample_questions";
import { useThumbKeys, useThumbs } from "../parts/thumbs";
import { EffectView } from "../parts/verdict_effect";
import { VerdictForm } from "../parts/verdict_form";
import { WordsPanel } from "../parts/words";
import { EngramError, read, type Schemas } from "../service";
import { address, usePlace, useShared } from "../state";

interface Failure {
  error: unknown;
  again: () => void;
}

export function Ask() {
  const { engram, collection, may, model } = useShared();
  const place = usePlace();
  const [form, setForm] = useState<Question>(() => questionFrom(place.settings));
  const [state, setState] = useState<AnswerState | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  /** Number of the latest request; answers to earlier ones are dropped. */
  const latest = useRef(0);
  /** Whether the form was changed while an answer was on its way, which then leaves it as it is. */
  const isEdited = useRef(false);

  const show = (shown: AnswerState | null) => {
    setState(shown);
    setFailure(null);
    setIsBusy(false);
    if (shown !== null) {
      remember(shown);
      if (!isEdited.current) setForm(shown.question);
    }
  };
  const edit = (question: Question) => {
    isEdited.current ||= isBusy;
    setForm(question);
  };
  /** Run a request. After an error no answer is shown. */
  const attempt = async (request: () => Promise<AnswerState>, again: () => void): Promise<AnswerState | null> => {
    const turn = ++latest.current;
    setIsBusy(true);
    setFailure(null);
    try {
      const answered = await request();
      if (turn !== latest.current) return null;
      show(answered);
      return answered;
    } catch (error) {
      if (turn === latest.current) {
        show(null);
        setFailure({ error, again });
      }
      return null;
    }
  };
  const answerTo = async (question: Question): Promise<AnswerState> => {
    const body = queryBody(collection, question);
    const trimmed = { ...question, text: body.query };
    if (!question.inWords || !model) return newAnswer(collection, trimmed, await engram.query(body.query, body), null, NO_THUMBS);
    const { retrieval, ...words } = await engram.answer(body.query, body);
    rememberWords(retrieval.query_id, words);
    return newAnswer(collection, trimmed, retrieval, words, NO_THUMBS);
  };
  /** Ask a question, and put the address of its answer in place of the question's. */
  const ask = async (question: Question) => {
    const request = async () => {
      const answered = await answerTo(question);
      if (state?.answer.query !== answered.answer.query) return answered;
      return { ...answered, earlierRanks: ranksOf(state.answer), effect: state.effect };
    };
    const answered = await attempt(request, () => void ask(question));
    if (answered !== null) location.replace(answerAddress(answered));
  };
  /** Show a stored answer. Its question is asked anew if the reader may not see it, or it is no longer stored. */
  const open = async (id: string, settings: URLSearchParams) => {
    const request = async () => {
      const params = { path: { query_id: id }, query: { collection } };
      try {
        const answer = await read<Schemas["EpisodeOut"]>(engram.api.GET("/queries/{query_id}", { params }));
        return newAnswer(collection, storedQuestion(answer, settings), answer, wordsOf(id));
      } catch (error) {
        const question = questionFrom(settings);
        if (question.text === "" || !(error instanceof EngramError) || ![403, 404].includes(error.status)) throw error;
        return { ...(await answerTo(question)), isSubstitute: true };
      }
    };
    setState(null);
    const answered = await attempt(request, () => void open(id, settings));
    if (answered?.isSubstitute) location.replace(answerAddress(answered));
  };
  useLayoutEffect(() => {
    const { page, about, settings } = place;
    if (page !== "" && page !== "ask") return;
    const known = answerById(about);
    if (known === undefined || known.answer.query_id !== state?.answer.query_id) isEdited.current = false;
    if (known?.collection === collection) {
      latest.current += 1;
      show(known);
      return;
    }
    const question = questionFrom(settings);
    setForm(question);
    if (about) void open(about, settings);
    else if (question.text.trim()) void ask(question);
    else {
      latest.current += 1;
      show(null);
    }
  }, [place]);

  // An answer that arrives after the page was left must not lead back to it.
  useLayoutEffect(() => () => void (latest.current += 1), []);

  const submit = (question: Question) => {
    const target = address("ask", "", { c: collection, ...settingsOf(question) });
    if (location.hash === target) void ask(question);
    else location.hash = target;
  };
  const change = (part: Partial<AnswerState>) => {
    if (state === null) return;
    const id = state.answer.query_id;
    const changed = update(id, part);
    if (changed !== null) setState((shown) => (shown?.answer.query_id === id ? changed : shown));
  };
  const mark = (sentence: number, type: Mark) => {
    if (state === null) return;
    const marks = new Map(state.marks);
    if (marks.get(sentence) === type) marks.delete(sentence);
    else marks.set(sentence, type);
    change({ marks });
  };
  const control = useThumbs(state, change);
  const thumbs = may("judge") ? control : null;
  useThumbKeys(control, thumbs !== null && state !== null && state.answer.passages.length > 0);

  return (
    <>
      <Head
        title="Ask"
        beside={
          state !== null && (
            <a class="button" href={address("ask", "", { c: collection })}>
              New question
            </a>
          )
        }
      >
        Mark what helped and what did not; the next question of its kind finds its evidence sooner.
      </Head>
      <div class="stack">
        <QuestionForm question={form} onChange={edit} onAsk={submit} answered={state?.answer.query ?? null} isBusy={isBusy} />
        {failure && <Problem error={failure.error} again={failure.again} />}
        {state === null && failure === null && !isBusy && (
          <div>
            <Empty title="No question yet">
              The answer shows each passage with the sentences that speak for it, and how surely all the evidence is there.
            </Empty>
            <SampleQuestions page="ask" />
          </div>
        )}
        {state !== null && (
          <div class={isBusy ? "stack outdated" : "stack"} aria-busy={isBusy}>
            {state.isSubstitute && (
              <p class="note">The answer of this address is not stored any more, or your key does not show it. This is a new answer to its question.</p>
            )}
            {state.words && <WordsPanel words={state.words} passages={state.answer.passages} />}
            {state.question.inWords && state.words === null && model && (
              <p class="note">The answer in words is not stored. Press “Ask again” to have it written.</p>
            )}
            {state.effect && <EffectView state={state} effect={state.effect} change={change} />}
            <div class="two">
              <AnswerView state={state} thumbs={thumbs} mark={mark} />
              <div class="stack beside">
                <Panel title="Is it enough?" note={`${counted(state.answer.hops, "hop")}, ${Math.round(state.answer.timings.total_ms)} ms`}>
                  <Gauge probability={state.answer.sufficiency} />
                  {state.answer.warnings?.map((warning) => (
                    <p key={warning.type} class="quiet">
                      {warning.detail}
                    </p>
                  ))}
                </Panel>
                {thumbs && state.answer.passages.length > 0 && <VerdictForm state={state} change={change} />}
              </div>
            </div>
          </div>
        )}
      </div>
    </>
  );
}
