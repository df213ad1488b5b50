/** One result: the sentence that answers in its place, where it is from, what stands around it, and thumbs. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { type Engram, EngramError, type Schemas } from "../service";
import { Icon } from "../parts/icons";
import { passageVerdict } from "../parts/passage_verdict";
import { splitAtSentence } from "./best_sentence";
import { keepRating, placeOf, type Rating, ratingAt } from "./ratings";
import { findRepeated } from "./repeated";
import { fill, sayEffect, sayFailure, words } from "./words";

/** Characters that are shown before and after the sentence, until more is wanted. */
const BEFORE = 220;
const AFTER = 380;

interface Props {
  engram: Engram;
  answer: Schemas["QueryOut"];
  passage: Schemas["PassageHit"];
  mayJudge: boolean;
}

export function Result({ engram, answer, passage, mayJudge }: Props) {
  const [isWhole, setIsWhole] = useState(false);
  const { source, context } = passage;
  const [before, sentence, after] = splitAtSentence(passage, answer.query);
  const { earlier, lead, later } = around(passage, before.length);
  const [head, tail] = isWhole ? [before.slice(lead), after] : [shorten(before, -BEFORE), shorten(after, AFTER)];
  const { at, hold } = useHeldPlace(isWhole);
  const hasMore = head !== before || tail !== after || (context?.before.length ?? 0) + (context?.after.length ?? 0) > 0;
  const title = passage.title || source.document;
  return (
    <article class="result" aria-label={title}>
      <header>
        <h2>
          {source.link === null ? (
            title
          ) : (
            <a href={source.link} target="_blank" rel="noopener noreferrer">
              {title}
            </a>
          )}
        </h2>
        <p class="quiet">{[sayOrigin(source, title), sayPeriod(source)].filter(Boolean).join(" · ")}</p>
        {source.replaced_by && <p class="quiet">{fill(words.replaced, source.replaced_by)}</p>}
      </header>
      <div lang={source.language}>
        {isWhole && earlier.map((text) => <p key={text} class="around">{text}</p>)}
        <p>
          {head}
          <span ref={at}>{sentence && <mark>{sentence}</mark>}</span>
          {tail}
        </p>
        {isWhole && later.map((text) => <p key={text} class="around">{text}</p>)}
      </div>
      {(hasMore || isWhole) && (
        <div>
          <button
            type="button"
            class="plain"
            aria-expanded={isWhole}
            onClick={() => {
              hold();
              setIsWhole(!isWhole);
            }}
          >
            {isWhole ? words.less : words.more}
          </button>
        </div>
      )}
      {mayJudge && <Thumbs engram={engram} answer={answer} passageId={passage.passage_id} title={title} />}
    </article>
  );
}

/** The texts around a passage without what stands in two of them, and how much of the passage's start stands before it too. */
function around({ text, context }: Schemas["PassageHit"], most: number) {
  const texts = [...(context?.before ?? []), { text }, ...(context?.after ?? [])].map((one) => one.text);
  const repeated = texts.slice(1).map((later, place) => findRepeated(texts[place] ?? "", later));
  const at = context?.before.length ?? 0;
  const lead = repeated[at - 1]?.lead ?? 0;
  return {
    earlier: texts.slice(0, at).map((one, place) => one.slice(0, one.length - (repeated[place]?.shared ?? 0)).trimEnd()),
    lead: lead > most ? 0 : lead,
    later: texts.slice(at + 1).map((one, place) => {
      const start = repeated[at + place];
      return one.slice(start ? start.lead + start.shared : 0).trimStart();
    }),
  };
}

/** Keeps an element where it is on the screen when text comes or goes above it, or brings it back into sight. */
function useHeldPlace(isWhole: boolean) {
  const at = useRef<HTMLSpanElement>(null);
  const held = useRef<number | null>(null);
  const top = () => at.current?.getBoundingClientRect().top ?? 0;
  useLayoutEffect(() => {
    if (held.current === null) return;
    scrollBy(0, top() - held.current);
    if (!isWhole) at.current?.scrollIntoView({ block: "nearest" });
  }, [isWhole]);
  return { at, hold: () => (held.current = top()) };
}

/** Document, headings and page, without what the title says already. */
function sayOrigin({ document, heading, page }: Schemas["PassageSourceOut"], title: string): string {
  const path = [document, ...heading].filter((one) => one !== title);
  return [path.join(" › "), page === null ? "" : fill(words.page, page)].filter(Boolean).join(", ");
}

/** The days that the document holds from and until. */
function sayPeriod({ valid_from, valid_until }: Schemas["PassageSourceOut"]): string {
  const days = [valid_from, valid_until].map((day) => day && new Date(day).toLocaleDateString(undefined, { dateStyle: "medium", timeZone: "UTC" }));
  return valid_until === null ? (days[0] ?? "") : `${days[0] ?? ""} – ${days[1]}`.trim();
}

/** The first characters of the text, or the last ones if `most` is negative, with whole words. */
function shorten(text: string, most: number): string {
  if (text.length <= Math.abs(most)) return text;
  return most < 0 ? `… ${text.slice(most).replace(/^\S*\s/, "")}` : `${text.slice(0, most).replace(/\s\S*$/, "")} …`;
}

function Thumbs({ engram, answer, passageId, title }: Pick<Props, "engram" | "answer"> & { passageId: string; title: string }) {
  const place = placeOf(engram.collection, answer.query, passageId);
  const [stored, setStored] = useState<Rating | null>(() => ratingAt(place));
  const [said, setSaid] = useState("");
  const [isBusy, setIsBusy] = useState(false);
  const store = (rating: Rating | null) => {
    keepRating(place, rating);
    setStored(rating);
  };
  const press = async (up: boolean) => {
    if (isBusy) return;
    setIsBusy(true);
    setSaid(words.storing);
    let isRevoking = stored !== null;
    try {
      if (stored !== null) {
        await engram.revoke(stored.id);
        isRevoking = false;
        store(null);
        setSaid(words.takenBack);
      }
      if (stored?.up !== up) {
        const verdict = await engram.feedback(answer.query_id, { ...passageVerdict(answer, passageId, up), wait: true });
        store({ id: verdict.feedback_id, up });
        setSaid(`${sayEffect(up, verdict.effect)} ${words.takeBack}`);
      }
    } catch (error) {
      const isGone = isRevoking && error instanceof EngramError && [404, 409].includes(error.status);
      if (isGone) store(null);
      setSaid(isGone ? words.notTakenBack : `${words.notStored} ${sayFailure(error)}`);
    }
    setIsBusy(false);
  };
  return (
    <div class="row" role="group" aria-label={fill(words.rate, title)}>
      <span class="thumbs">
        {([true, false] as const).map((up) => (
          <button key={String(up)} type="button" aria-pressed={stored?.up === up} aria-disabled={isBusy} onClick={() => void press(up)}>
            <Icon name={up ? "up" : "down"} />
            {up ? words.helped : words.notHelped}
          </button>
        ))}
      </span>
      <span class="quiet" role="status">
        {said}
      </span>
    </div>
  );
}
