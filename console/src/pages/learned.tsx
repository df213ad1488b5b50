/** What a collection learned, who taught it, and how to take it back. */

import { Head } from "../parts/basic";
import { JudgesPart } from "../parts/judges";
import { KeysPart } from "../parts/keys";
import { LiftPart } from "../parts/lift";
import { MemoriesPart } from "../parts/memories";
import { VerdictsPart } from "../parts/verdicts";
import { address, usePlace, useShared } from "../state";

const PARTS = [
  ["memories", "Memories", MemoriesPart],
  ["verdicts", "Verdicts", VerdictsPart],
  ["judges", "Judges", JudgesPart],
  ["keys", "Passage keys", KeysPart],
  ["lift", "Lift", LiftPart],
] as const;

export function Learned() {
  const { about } = usePlace();
  const { has } = useShared();
  const parts = PARTS.filter(([name]) => name !== "lift" || has("experiments"));
  const named = /^\d+$/.test(about) ? "verdicts" : about;
  const [current, , Part] = parts.find(([name]) => name === named) ?? PARTS[0];
  return (
    <>
      <Head title="What it learned">Nothing is learned that cannot be named, weighed and taken back.</Head>
      <nav class="tabs" aria-label="What it learned">
        {parts.map(([name, title]) => (
          <a key={name} href={address("learned", name)} aria-current={name === current ? "page" : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <Part />
    </>
  );
}
