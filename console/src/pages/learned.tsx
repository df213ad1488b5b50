/** What a collection learned, who taught it, and how to take it back. */

import { Head } from "../parts/basic";
import { GapsPart } from "../parts/gaps";
import { JudgesPart } from "../parts/judges";
import { KeysPart } from "../parts/keys";
import { LiftPart } from "../parts/lift";
import { MemoriesPart } from "../parts/memories";
import { TuningPart } from "../parts/tuning";
import { VerdictsPart } from "../parts/verdicts";
import { address, usePlace, useShared } from "../state";

const VERDICTS = ["verdicts", "Verdicts", VerdictsPart] as const;
/** In the order of the tabs. A part of a wing that is off is not there. */
const PARTS = [
  ["memories", "Memories", MemoriesPart, "why"],
  VERDICTS,
  ["gaps", "Not answered", GapsPart, "why"],
  ["judges", "Judges", JudgesPart],
  ["keys", "Passage keys", KeysPart],
  ["tuning", "Question encoder", TuningPart, "tuning"],
  ["lift", "Lift", LiftPart, "experiments"],
] as const;

export function Learned() {
  const { about } = usePlace();
  const { has } = useShared();
  const parts = PARTS.filter(([, , , wing]) => wing === undefined || has(wing));
  const named = /^\d+$/.test(about) ? "verdicts" : about;
  const [current, , Part] = parts.find(([name]) => name === named) ?? parts[0] ?? VERDICTS;
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
