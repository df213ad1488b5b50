/** Pictures beside names; they say nothing that the names do not. */

/** Apart, since the search page has no others. */
export const UP = "M7 11v9H4v-9zM7 11l4-7c1.500 0 2.500 1 2.500 2.500V10H19l-1.500 10H7";
export const DOWN = "M7 13V4H4v9zM7 13l4 7c1.500 0 2.500-1 2.500-2.500V14H19L17.500 4H7";

const PATHS = {
  ask: "M4 5h16v11H9l-5 4zM8.500 9h7M8.500 12h4.500",
  why: "M6 6.500h0M18 6.500h0M12 17.500h0M7.500 7.500 11 16M16.500 7.500 13 16M8 6.500h8M4 6.500a2 2 0 1 0 4 0a2 2 0 1 0-4 0M16 6.500a2 2 0 1 0 4 0a2 2 0 1 0-4 0M10 17.500a2 2 0 1 0 4 0a2 2 0 1 0-4 0",
  learned: "M4 19V5M4 19h16M7 15l4-5 3 3 5-7",
  collections: "M4 7c0-1.700 3.600-3 8-3s8 1.300 8 3-3.600 3-8 3-8-1.300-8-3zM4 7v10c0 1.700 3.600 3 8 3s8-1.300 8-3V7M4 12c0 1.700 3.600 3 8 3s8-1.300 8-3",
  sessions: "M5 6h9M5 12h14M5 18h6M17.500 4v4M15.500 6h4",
  facts: "M5 12a2.500 2.500 0 1 0 5 0a2.500 2.500 0 1 0-5 0M15 6a2 2 0 1 0 4 0a2 2 0 1 0-4 0M15 18a2 2 0 1 0 4 0a2 2 0 1 0-4 0M9.500 10.500 15 7M9.500 13.500 15 17",
  health: "M3 12h4l2.500-6 4 12 2.500-6h5",
  keys: "M4 15a4 4 0 1 0 8 0a4 4 0 1 0-8 0M11 12.500 19 4.500M16 7.500l2.500 2.500",
  up: UP,
  down: DOWN,
  check: "M5 12.500 10 17.500 19 7",
  cross: "M6.500 6.500l11 11M17.500 6.500l-11 11",
  text: "M5 6h14M5 10h14M5 14h14M5 18h8",
  menu: "M4 7h16M4 12h16M4 17h16",
} as const;

export type IconName = keyof typeof PATHS;

export const Icon = ({ name }: { name: IconName }) => <Picture path={PATHS[name]} />;

export function Picture({ path }: { path: string }) {
  return (
    <svg viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={path} />
    </svg>
  );
}
