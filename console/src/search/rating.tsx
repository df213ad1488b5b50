/** Thumbs of the page: on a passage, and on "not found". */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { type Engram, EngramError, type Schemas } from "../service";
import { DOWN, Picture, UP } from "../parts/icons";
import { passageVerdict } from "../parts/passage_verdict";
import { keepRating, placeOf, type Rating, ratingAt } from "./ratings";
import { fill, sayEffect, sayFailure, words } from "./words";

interface Props {
  engram: Engram;
  answer: Schemas["QueryOut"];
}

/** A rating that is kept in this tab, given by one press and taken back by the next. */
function useRating(engram: Engram, place: string, judge: (up: boolean) => Promise<Schemas["FeedbackOut"]>, say: typeof sayEffect) {
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
        const verdict = await judge(up);
        store({ id: verdict.feedback_id, up });
        setSaid(`${say(up, verdict.effect)} ${words.takeBack}`);
      }
    } catch (error) {
      const isGone = isRevoking && error instanceof EngramError && [404, 409].includes(error.status);
      if (isGone) store(null);
      setSaid(isGone ? words.notTakenBack : `${words.notStored} ${sayFailure(error)}`);
    }
    setIsBusy(false);
  };
  return { stored, said, isBusy, press };
}

function Group({ label, said, children }: { label: string; said: string; children: ComponentChildren }) {
  const status = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (said) status.current?.scrollIntoView({ block: "nearest" });
  }, [said]);
  return (
    <div class="row" role="group" aria-label={label}>
      <span class="thumbs">{children}</span>
      <span class="quiet" role="status" ref={status}>
        {said}
      </span>
    </div>
  );
}

export function Thumbs({ engram, answer, passageId, name }: Props & { passageId: string; name: string }) {
  const judge = (up: boolean) => engram.feedback(answer.query_id, { ...passageVerdict(answer, passageId, up), wait: true });
  const { stored, said, isBusy, press } = useRating(engram, placeOf(engram.collection, answer.query, passageId), judge, sayEffect);
  return (
    <Group label={fill(words.rate, name)} said={said}>
      {([true, false] as const).map((up) => (
        <button key={String(up)} type="button" aria-pressed={stored?.up === up} aria-disabled={isBusy} onClick={() => void press(up)}>
          <Picture path={up ? UP : DOWN} />
          {up ? words.helped : words.notHelped}
        </button>
      ))}
    </Group>
  );
}

/** Asks whether the answer is missing, once passages are shown that may not hold it. */
export function Missing({ engram, answer }: Props) {
  const judge = () => engram.thumb(answer, { up: false, reason: "missing", wait: true });
  const say = (_: boolean, effect: string | null | undefined) => (effect === null || effect === undefined ? words.soon : words.noted);
  const { stored, said, isBusy, press } = useRating(engram, placeOf(engram.collection, answer.query, ""), judge, say);
  const question = fill(words.isMissing, engram.collection);
  return (
    <div class="panel stack">
      <p>{question}</p>
      <Group label={question} said={said}>
        <button type="button" aria-pressed={stored !== null} aria-disabled={isBusy} onClick={() => void press(false)}>
          {words.missing}
        </button>
      </Group>
    </div>
  );
}
