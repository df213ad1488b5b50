/** A table, described by its columns. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { Term, type TermName } from "./term";

export interface Column<Row> {
  title: string;
  /** The term that explains the title. */
  term?: TermName;
  /** Whether the title is told to those who hear the page only, as of a column of buttons. */
  quiet?: boolean;
  /** Whether it says what the row is of. */
  heads?: boolean;
  class?: string;
  cell: (row: Row) => ComponentChildren;
}

interface Props<Row> {
  rows: readonly Row[];
  /** What tells the rows apart. */
  by: (row: Row) => string | number;
  /** Those that are there; `false` stands for one that the key does not allow. */
  columns: readonly (Column<Row> | false)[];
  class?: string;
}

export function Table<Row>({ rows, by, columns, ...rest }: Props<Row>) {
  const there = columns.filter((column) => column !== false);
  const frame = useRef<HTMLDivElement>(null);
  const isWide = useOverflow(frame);
  return (
    <div class="wide" ref={frame} tabIndex={isWide ? 0 : undefined} role={isWide ? "group" : undefined} aria-label={isWide ? "Table" : undefined}>
      <table class={rest.class}>
        <thead>
          <tr>
            {there.map(({ title, term, quiet, class: of }) => (
              <th key={title} scope="col" class={of}>
                {quiet ? <span class="hidden">{title}</span> : term ? <Term name={term}>{title}</Term> : title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={by(row)}>
              {there.map(({ title, heads, class: of, cell }) =>
                heads ? (
                  <th key={title} scope="row" class={of}>
                    {cell(row)}
                  </th>
                ) : (
                  <td key={title} class={of}>
                    {cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Whether the element is narrower than its contents. The keyboard must be able to scroll it then. */
function useOverflow(frame: { current: HTMLElement | null }): boolean {
  const [isWide, setIsWide] = useState(false);
  const measure = () => frame.current !== null && setIsWide(frame.current.scrollWidth > frame.current.clientWidth);
  useLayoutEffect(() => void measure());
  useLayoutEffect(() => {
    if (frame.current === null) return;
    const observer = new ResizeObserver(measure);
    observer.observe(frame.current);
    return () => observer.disconnect();
  }, []);
  return isWide;
}
