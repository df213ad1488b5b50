/** Two orders side by side, with a line for each passage from where it is in one to where it is in the other. */

export interface Movement {
  id: string;
  title: string;
  before: number | null;
  after: number | null;
}

const ROWS = 10;
const HEIGHT = 30;

export const shown = (rank: number | null): boolean => rank !== null && rank <= ROWS;
export const moved = (one: Movement): boolean => one.before !== one.after && (shown(one.before) || shown(one.after));

interface Props {
  movements: readonly Movement[];
  before?: string;
  after?: string;
}

export function Slopes({ movements, before = "Before", after = "After" }: Props) {
  const side = (by: "before" | "after") =>
    movements.filter((one) => shown(one[by])).sort((one, other) => (one[by] ?? 0) - (other[by] ?? 0));
  const [left, right] = [side("before"), side("after")];
  const height = Math.max(left.length, right.length, 1) * HEIGHT;
  const place = (rank: number | null) => (rank !== null && rank <= ROWS ? (rank - 0.5) * HEIGHT : height + 6);
  return (
    <div class="slopes">
      <h3>{before}</h3>
      <span />
      <h3>{after}</h3>
      <ol>
        {left.map((one) => (
          <li key={one.id} title={one.title}>
            <span class="figure">{one.before}</span> <span>{one.title}</span>
          </li>
        ))}
      </ol>
      <svg viewBox={`0 0 60 ${height}`} height={height} preserveAspectRatio="none" aria-hidden="true">
        {movements
          .filter((one) => shown(one.before) || shown(one.after))
          .map((one) => {
            const [from, to] = [place(one.before), place(one.after)];
            const tone = to < from ? "rises" : to > from ? "falls" : "stays";
            return <path key={one.id} class={tone} d={`M0 ${from}C30 ${from} 30 ${to} 60 ${to}`} />;
          })}
      </svg>
      <ol>
        {right.map((one) => (
          <li key={one.id} title={one.title}>
            <span class="figure">{one.after}</span> <span>{one.title}</span>
            {one.before !== one.after && <Was movement={one} />}
          </li>
        ))}
      </ol>
    </div>
  );
}

function Was({ movement: { before, after } }: { movement: Movement }) {
  const rises = before === null || before > (after ?? 0);
  return (
    <small class={rises ? "rises" : "falls"}>
      {rises ? "▲" : "▼"} {before === null ? "not ranked before" : `was ${before}`}
    </small>
  );
}
