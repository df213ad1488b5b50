/** A line over time, with what it says in words beside it. */

import { moment } from "./basic";

export interface Point {
  at: string;
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
}

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [560, 150, 44, 22, 8];

export function Line({ points, label, least = 0, most, tone, format }: Props) {
  const times = points.map((point) => Date.parse(point.at));
  const [from, to] = [times[0] ?? 0, times.at(-1) ?? 1];
  const x = (time: number) => LEFT + ((time - from) / (to - from || 1)) * (WIDTH - LEFT - 12);
  const y = (value: number) => TOP + (1 - (value - least) / (most - least || 1)) * (HEIGHT - TOP - BOTTOM);
  const path = points.map((point, at) => `${at === 0 ? "M" : "L"}${x(times[at] ?? 0).toFixed(1)} ${y(point.value).toFixed(1)}`).join("");
  const first = points[0];
  const last = points.at(-1);
  const said = first && last ? `${label}: ${format(first.value)} on ${moment(first.at)}, ${format(last.value)} on ${moment(last.at)}` : label;
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
          <circle key={point.at} cx={x(times[at] ?? 0)} cy={y(point.value)} r="3">
            <title>{`${moment(point.at)}: ${format(point.value)}`}</title>
          </circle>
        ))}
      {first && last && (
        <>
          <text x={LEFT} y={HEIGHT - 4}>
            {moment(first.at)}
          </text>
          <text x={WIDTH - 12} y={HEIGHT - 4} text-anchor="end">
            {moment(last.at)}
          </text>
        </>
      )}
    </svg>
  );
}
