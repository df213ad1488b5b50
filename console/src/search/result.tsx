/** One result: the sentence that answers in its place, where it is from, what stands around it, and thumbs. */

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import type { Engram, Schemas } from "../service";
import { excerpt, markText } from "./marked_text";
import { Thumbs } from "./rating";
import { findRepeated } from "./repeated";
import { ShownText } from "./shown_text";
import { fill, words } from "./words";

/** Characters of a sentence that names its result. */
const NAMED = 80;

interface Props {
  engram: Engram;
  answer: Schemas["QueryOut"];
  passage: Schemas["PassageHit"];
  mayJudge: boolean;
  /** Whether sentences are marked, as they probably answer. */
  isMarked: boolean;
}

export function Result({ engram, answer, passage, mayJudge, isMarked }: Props) {
  const { source, context, text } = passage;
  const hasContext = (context?.before.length ?? 0) + (context?.after.length ?? 0) > 0;
  const [isWhole, setIsWhole] = useState(false);
  const marked = useMemo(() => markText(answer, passage), [answer, passage]);
  const part = excerpt(text, marked);
  const { earlier, lead, later } = around(passage, marked.marks[0]?.start ?? 0);
  const { at, hold } = useHeldPlace(isWhole);
  const hasMore = hasContext || part.start > 0 || part.end < text.length;
  const title = passage.title || source.document;
  const sentence = marked.rows[0] ?? text.slice(marked.marks[0]?.start, marked.marks[0]?.end);
  const name = `${title}: ${shorten(sentence)}`;
  const toggle = () => {
    hold();
    setIsWhole(!isWhole);
  };
  return (
    <article class="result" aria-label={name}>
      <header>
        <h2>
          {source.link !== null ? (
            <a href={source.link} target="_blank" rel="noopener noreferrer">
              {title}
            </a>
          ) : (
            title
          )}
        </h2>
        <p class="quiet">{[sayOrigin(source, title), sayPeriod(source)].filter(Boolean).join(" · ")}</p>
        {source.replaced_by && <p class="quiet">{fill(words.replaced, source.replaced_by)}</p>}
      </header>
      <div lang={source.language}>
        {isWhole && earlier.map((one) => <Around key={one} text={one} />)}
        <div ref={at}>
          {marked.rows.map((row) => (
            <p key={row}>
              {isMarked ? <mark>{row}</mark> : row}
            </p>
          ))}
          <ShownText text={text} shown={isWhole ? { start: lead, end: text.length } : part} isPart={!isWhole} marks={isMarked ? marked.marks : []} />
        </div>
        {isWhole && later.map((one) => <Around key={one} text={one} />)}
      </div>
      {hasMore && (
        <div>
          <button type="button" class="plain" aria-expanded={isWhole} onClick={toggle}>
            {isWhole ? words.less : words.more}
          </button>
        </div>
      )}
      {mayJudge && <Thumbs engram={engram} answer={answer} passageId={passage.passage_id} name={name} />}
    </article>
  );
}

function shorten(sentence: string): string {
  return sentence.length <= NAMED ? sentence : `${sentence.slice(0, sentence.lastIndexOf(" ", NAMED) + 1 || NAMED)}…`;
}

function Around({ text }: { text: string }) {
  return (
    <div class="around">
      <ShownText text={text} shown={{ start: 0, end: text.length }} />
    </div>
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
      return one.slice(start ? start.lead + start.shared : 0).replace(/^\s*\n/, "");
    }),
  };
}

/**
 * Keeps the first mark of a text where it is on the screen when text comes or goes above it, or brings it back into
 * sight. It gets the focus, since the button that was pressed moves away.
 */
function useHeldPlace(isWhole: boolean) {
  const at = useRef<HTMLDivElement>(null);
  const held = useRef<number | null>(null);
  const mark = () => at.current?.querySelector("mark") ?? at.current;
  const top = () => mark()?.getBoundingClientRect().top ?? 0;
  useLayoutEffect(() => {
    const place = mark();
    if (held.current === null || place === null) return;
    scrollBy(0, top() - held.current);
    if (!isWhole) place.scrollIntoView({ block: "nearest" });
    place.tabIndex = -1;
    place.focus({ preventScroll: true });
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
