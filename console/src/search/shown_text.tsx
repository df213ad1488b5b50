/** A part of a passage's text, with its marks; lines of code are shown as such. */

import type { Range } from "./marked_text";

/** What a line of code begins with in a passage of an imported document. */
const CODE = "    ";

interface Props {
  text: string;
  shown: Range;
  marks?: readonly Range[];
  /** Whether it says where text is left out. */
  isPart?: boolean;
}

export function ShownText({ text, shown, marks = [], isPart = false }: Props) {
  const lines = splitLines(text, shown);
  return (
    <p>
      {isPart && shown.start > 0 && "… "}
      {lines.map((line, number) => {
        const isCode = text.startsWith(CODE, line.start);
        const written = { ...line, start: line.start + (isCode ? CODE.length : 0) };
        const pieces = splitAtMarks(written, marks).map(({ start, end, isMark }) => {
          const words = <Words text={text.slice(start, end)} />;
          return isMark ? <mark>{words}</mark> : words;
        });
        if (isCode) return <code key={line.start}>{pieces}</code>;
        const isParted = number > 0 && !text.startsWith(CODE, lines[number - 1]?.start);
        return [isParted && "\n", ...pieces];
      })}
      {isPart && shown.end < text.length && " …"}
    </p>
  );
}

function splitLines(text: string, { start, end }: Range): Range[] {
  let at = start;
  return text.slice(start, end).split("\n").map((line) => {
    const range = { start: at, end: at + line.length };
    at = range.end + 1;
    return range;
  });
}

function splitAtMarks({ start, end }: Range, marks: readonly Range[]): (Range & { isMark: boolean })[] {
  const borders = marks.flatMap((mark) => [mark.start, mark.end]).filter((border) => border > start && border < end);
  return [start, ...borders].map((from, number) => ({
    start: from,
    end: borders[number] ?? end,
    isMark: marks.some((mark) => mark.start <= from && from < mark.end),
  }));
}

/** Text whose options, such as --readers, no line end parts. */
function Words({ text }: { text: string }) {
  return <>{text.split(/(?<!\S)(--?\p{L}[\w-]*)/u).map((part, number) => (number % 2 === 1 ? <span class="option">{part}</span> : part))}</>;
}
