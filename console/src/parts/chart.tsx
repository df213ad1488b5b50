/** A line over time or over numbers, with what it says in words beside it. */

import { moment } from "./basic";

export interface Point {
  /** Milliseconds, or a number. */
  at: number;
  value: number;
}

interface Props {
  points: readonly Point[];
  /** What is drawn, for whoever does not see it. */
  label: string;
  least?: number;
  most: number;
  tone: "accent" | "warm";
  format: (value: number) => string;
  /** What a place is called; a moment by default. */
  place?: (at: number) => string;
}

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [560, 150, 44, 22, 8];

export function Line({ points, label, least = 0, most, tone, format, place = (at) => moment(new Date(at).toISOString()) }: Props) {
  const [from, to] = [points[0]?.at ?? 0, points.at(-1)?.at ?? 1];
  const x = (at: number) => LEFT + ((at - from) / (to - from || 1)) * (WIDTH - LEFT - 12);
  const y = (value: number) => TOP + (1 - (value - least) / (most - least || 1)) * (HEIGHT - TOP - BOTTOM);
  const path = points.map((point, at) => `${at === 0 ? "M" : "L"}${x(point.at).toFixed(1)} ${y(point.value).toFixed(1)}`).join("");
  const first = points[0];
  const last = points.at(-1);
  const said = first && last ? `${label}: ${format(first.value)}, ${place(first.at)}; ${format(last.value)}, ${place(last.at)}` : label;
  return (
    <svg class={`line ${tone}`} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={said}>
      {[least, (least + most) / 2, most].map((value) => (
        <g key={value}>
          <path class="grid" d={`M${LEFT} ${y(value)}H${WIDTH - 12}`} />
          <text x={LEFT - 7} y={y(value) + 4} text-anchor="end">
            {format(value)}
          </text>
        </g>
      ))}
      {points.length > 1 && <path class="area" d={`${path}L${x(to)} ${y(least)}L${x(from)} ${y(least)}Z`} />}
      <path class="stroke" d={path} />
      {points.length <= 30 &&
        points.map((point, at) => (
          <circle key={at} cx={x(point.at)} cy={y(point.value)} r="3">
            <title>{`${place(point.at)}: ${format(point.value)}`}</title>
          </circle>
        ))}
      {first && last && (
        <>
          <text x={LEFT} y={HEIGHT - 4}>
            {place(first.at)}
          </text>
          <text x={WIDTH - 12} y={HEIGHT - 4} text-anchor="end">
            {place(last.at)}
          </text>
        </>
      )}
    </svg>
  );
}
