/** An answer: its passages with their sentences, best first, and the thumbs of each. */

import type { Schemas } from "../service";
import { address, useShared } from "../state";
import type { AnswerState, Mark } from "./answer_state";
import { counted, Empty, figure } from "./basic";
import { CopyButton, curlCommand } from "./copy_button";
import { Icon } from "./icons";
import { SampleQuestions } from "./sample_questions";
import { ContextButton, SourceLine, sourcePath } from "./source";
import { AnswerThumbs, type ThumbControl, ThumbPair } from "./thumbs";
import { numbers, place } from "./words";

interface Props {
  state: AnswerState;
  /** Null if the key may not judge. */
  thumbs: ThumbControl | null;
  mark: (sentence: number, mark: Mark) => void;
}

export function AnswerView({ state, thumbs, mark }: Props) {
  const { answer, question, collection, earlierRanks, words, marks } = state;
  const { has } = useShared();
  if (answer.passages.length === 0) {
    return (
      <div>
        <Empty title="Nothing was found">Another wording may help, or a collection that holds more.</Empty>
        <SampleQuestions page="ask" />
      </div>
    );
  }
  const cited = numbers(words);
  return (
    <section aria-label="Answer" class="stack close">
      <div class="row" style={{ justifyContent: "space-between" }}>
        <h2>{counted(answer.passages.length, "passage")}, best first</h2>
        <span class="row tools">
          <CopyButton text={() => location.href} label="Copy link" subject="this answer" />
          <CopyButton text={answer.query_id} label="Copy query id" />
          <CopyButton text={() => curlCommand(collection, question)} label="Copy as curl" />
          {has("why") && <a href={address("why", answer.query_id, { c: collection })}>Why this order?</a>}
        </span>
      </div>
      {thumbs && <AnswerThumbs control={thumbs} />}
      <ol class="stack close">
        {answer.passages.map((passage, at) => (
          <li key={passage.passage_id}>
            <Passage
              passage={passage}
              rank={at + 1}
              earlierRank={earlierRanks?.get(passage.passage_id) ?? null}
              isCompared={earlierRanks !== null}
              cited={cited}
              marks={marks}
              thumbs={thumbs}
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
  earlierRank: number | null;
  /** Whether there is an earlier answer to the same question. */
  isCompared: boolean;
  /** Sentences that an answer in words rests on, each with its number there. */
  cited: ReadonlyMap<number, number>;
  marks: AnswerState["marks"];
  thumbs: Props["thumbs"];
  mark: Props["mark"];
}

function Passage({ passage, rank, earlierRank, isCompared, cited, marks, thumbs, mark }: PassageProps) {
  const strongest = Math.max(...passage.sentences.map((one) => one.score ?? 0));
  const title = sourcePath(passage.source);
  return (
    <article class="passage" data-judged={passage.passage_id} tabIndex={-1} aria-label={`Passage ${rank}: ${title}`}>
      <span class="rank figure" role="img" aria-label={`Rank ${rank}`}>
        {rank}
      </span>
      <div>
        <header class="row">
          <h3>{title}</h3>
          {isCompared && earlierRank !== rank && <RankChange before={earlierRank} rank={rank} />}
          {passage.explored && <span class="badge accent">explored</span>}
          <span class="row end">
            <span class="quiet figure" title="Score">
              {figure(passage.score)}
            </span>
            <CopyButton text={passage.passage_id} label="Copy id" subject={title} />
            {thumbs && <ThumbPair control={thumbs} target={passage.passage_id} name={title} />}
          </span>
        </header>
        <SourceLine source={passage.source} />
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
              <span class="thumbs">
                <ContextButton passage={passage} sentence={one} />
                {thumbs && (
                  <>
                    <SentenceMark type="supporting" sentence={one} marks={marks} mark={mark} />
                    <SentenceMark type="rejected" sentence={one} marks={marks} mark={mark} />
                  </>
                )}
              </span>
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
      Nearly the same text: {duplicates.map((one) => sourcePath(one.source)).join(", ")}
    </p>
  );
}

function RankChange({ before, rank }: { before: number | null; rank: number }) {
  if (before === null) return <span class="badge good">not in the answer before</span>;
  return before > rank ? (
    <span class="badge good">▲ was {before}</span>
  ) : (
    <span class="badge bad">▼ was {before}</span>
  );
}

interface SentenceMarkProps {
  type: Mark;
  sentence: Schemas["SentenceOut"];
  marks: AnswerState["marks"];
  mark: Props["mark"];
}

function SentenceMark({ type, sentence, marks, mark }: SentenceMarkProps) {
  const label = type === "supporting" ? "Helped" : "Did not help";
  return (
    <button
      type="button"
      class={`thumb ${type}`}
      aria-pressed={marks.get(sentence.sentence_id) === type}
      aria-label={`${label}: ${sentence.text}`}
      title={label}
      onClick={() => mark(sentence.sentence_id, type)}
    >
      <Icon name={type === "supporting" ? "check" : "cross"} />
    </button>
  );
}
