/** Thumbs: one for the answer and one for each passage, stored as they are pressed. */

import { useEffect, useRef, useState } from "preact/hooks";

import { read, type Schemas } from "../service";
import { useShared } from "../state";
import { type AnswerState, NO_THUMBS, type Thumb, type Thumbs } from "./answer_state";
import { Problem } from "./basic";
import { Icon } from "./icons";
import { passageVerdict } from "./passage_verdict";

/** A passage's id, or null for the answer as a whole. */
export type ThumbTarget = string | null;

export interface ThumbControl {
  thumbOn: (target: ThumbTarget) => Thumb | null;
  /** Press a thumb; a pressed one is taken back. */
  press: (target: ThumbTarget, up: boolean, reason?: string) => void;
  error: unknown;
  again: () => void;
  status: string;
}

const LISTED = 200;
/** The judge of a verdict where no access key names one. */
const ANONYMOUS = "anonymous";
export const REASONS: readonly (readonly [string, string])[] = [
  ["missing", "Evidence is missing"],
  ["irrelevant", "Irrelevant"],
  ["wrong_answer", "The answer is wrong"],
  ["outdated", "Outdated"],
];

/** The judge's thumbs under the answer; `change` stores them in its state. */
export function useThumbs(state: AnswerState | null, change: (part: Partial<AnswerState>) => void): ThumbControl {
  const { engram, collection, may, me } = useShared();
  const busy = useRef(false);
  const [failure, setFailure] = useState<{ error: unknown; again: () => void } | null>(null);
  const [status, setStatus] = useState("");
  const id = state?.answer.query_id;

  const restore = async () => {
    if (state === null) return;
    setFailure(null);
    try {
      const params = { query: { collection, query_id: state.answer.query_id, limit: LISTED } };
      const page = await read<Schemas["FeedbackPage"]>(engram.api.GET("/feedback", { params }));
      change({ thumbs: storedThumbs(page.feedback, state.answer, me.judge ?? ANONYMOUS) });
    } catch (error) {
      setFailure({ error, again: () => void restore() });
    }
  };
  useEffect(() => {
    setStatus("");
    setFailure(null);
    if (state !== null && state.thumbs === null && may("judge")) void restore();
  }, [id]);

  const thumbs = state?.thumbs ?? NO_THUMBS;
  const thumbOn = (target: ThumbTarget) => (target === null ? thumbs.answer : (thumbs.passages.get(target) ?? null));

  const press = async (target: ThumbTarget, up: boolean, reason: string | null): Promise<void> => {
    if (state === null || state.thumbs === null || busy.current) return;
    const before = thumbOn(target);
    const isRevocation = before !== null && before.up === up && before.reason === reason;
    busy.current = true;
    setFailure(null);
    try {
      if (isRevocation) {
        await revoke(state, target, before);
        change({ thumbs: withThumb(thumbs, target, null) });
        setStatus(`Verdict ${before.feedbackId} is taken back.`);
      } else {
        const verdict = await store(state, target, up, reason, before);
        const id = verdict.feedback_id;
        change({ thumbs: withThumb(thumbs, target, { feedbackId: id, up, reason: target === null ? reason : null }) });
        setStatus(`Stored as verdict ${id}. ${verdict.effect ?? "It is learned soon."} Press again to take it back.`);
      }
    } catch (error) {
      setFailure({ error, again: () => void press(target, up, reason) });
    } finally {
      busy.current = false;
    }
  };
  const revoke = async ({ answer }: AnswerState, target: ThumbTarget, before: Thumb): Promise<void> => {
    if (target === null) await engram.thumb(answer, { up: null });
    else await engram.revoke(before.feedbackId);
  };
  const store = async (
    { answer, words }: AnswerState,
    target: ThumbTarget,
    up: boolean,
    reason: string | null,
    before: Thumb | null,
  ) => {
    if (target === null) {
      const cited = up && words ? words.citations.map(({ sentence_id }) => sentence_id) : [];
      return engram.thumb(answer, { up, cited, wait: true, ...(reason === null ? {} : { reason }) });
    }
    if (before !== null) await engram.revoke(before.feedbackId);
    return engram.feedback(answer.query_id, { ...passageVerdict(answer, target, up), wait: true });
  };

  return {
    thumbOn,
    press: (target, up, reason) => void press(target, up, reason ?? null),
    error: failure?.error,
    again: () => failure?.again(),
    status,
  };
}

function withThumb(thumbs: Thumbs, target: ThumbTarget, thumb: Thumb | null): Thumbs {
  if (target === null) return { ...thumbs, answer: thumb };
  const passages = new Map(thumbs.passages);
  if (thumb === null) passages.delete(target);
  else passages.set(target, thumb);
  return { ...thumbs, passages };
}

/** The judge's thumbs among the stored verdicts on the answer; the latest of each counts. */
function storedThumbs(verdicts: readonly Schemas["ListedFeedbackOut"][], answer: Schemas["QueryOut"], judge: string): Thumbs {
  let thumbs = NO_THUMBS;
  const holders = new Map(answer.passages.flatMap((passage) => passage.sentences.map((one) => [one.sentence_id, passage] as const)));
  for (const one of verdicts) {
    if (one.judge !== judge || one.status === "revoked") continue;
    const thumb = { feedbackId: one.feedback_id, reason: one.reason };
    if (one.rating === "up" || one.rating === "down") {
      thumbs = withThumb(thumbs, null, { ...thumb, up: one.rating === "up" });
      continue;
    }
    const [passage, ...others] = one.supporting_passages;
    if (passage !== undefined && others.length === 0 && one.sentences.every(({ role }) => role === "likely")) {
      thumbs = withThumb(thumbs, passage, { ...thumb, up: true });
    }
    const [first] = one.sentences;
    const holder = first && holders.get(first.sentence_id);
    const isWhole = holder !== undefined && (one.sentences_cut || one.sentences.length === holder.sentences.length);
    if (isWhole && one.sentences.every(({ role, sentence_id }) => role === "rejected" && holders.get(sentence_id) === holder)) {
      thumbs = withThumb(thumbs, holder.passage_id, { ...thumb, up: false });
    }
  }
  return thumbs;
}

/** The two thumbs of an answer or a passage; `name` says of what. */
export function ThumbPair({ control, target, name }: { control: ThumbControl; target: ThumbTarget; name: string }) {
  const thumb = control.thumbOn(target);
  return (
    <span class="thumbs" role="group" aria-label={`Thumbs: ${name}`}>
      {([true, false] as const).map((up) => (
        <button
          key={String(up)}
          type="button"
          class={`thumb ${up ? "supporting" : "rejected"}`}
          aria-pressed={thumb?.up === up}
          aria-label={`Thumb ${up ? "up" : "down"}: ${name}`}
          title={up ? "Thumb up (key u)" : "Thumb down (key d)"}
          onClick={() => control.press(target, up, thumb?.up === up ? (thumb.reason ?? undefined) : undefined)}
        >
          <Icon name={up ? "up" : "down"} />
        </button>
      ))}
    </span>
  );
}

/** The thumbs of the answer as a whole, and the reasons of a thumb down. */
export function AnswerThumbs({ control }: { control: ThumbControl }) {
  const thumb = control.thumbOn(null);
  return (
    <div class="panel answer-thumbs" data-judged="" tabIndex={-1} role="group" aria-label="The answer as a whole">
      <div class="row">
        <strong>Did this answer help?</strong>
        <ThumbPair control={control} target={null} name="the answer" />
        {thumb?.up === false && (
          <span class="row reasons" role="group" aria-label="Reason">
            {REASONS.map(([reason, label]) => (
              <button
                key={reason}
                type="button"
                class="small"
                aria-pressed={thumb.reason === reason}
                onClick={() => control.press(null, false, reason === thumb.reason ? undefined : reason)}
              >
                {label}
              </button>
            ))}
          </span>
        )}
        <span class="quiet keys">
          <kbd>j</kbd> next <kbd>k</kbd> previous <kbd>u</kbd> thumb up <kbd>d</kbd> thumb down
        </span>
      </div>
      <p class="quiet" role="status">
        {control.status}
      </p>
      <Problem error={control.error} again={control.again} />
    </div>
  );
}

const JUDGED = "[data-judged]";

/**
 * Keys for the answer and its passages, which bear `data-judged`: j and k move the focus, u and d press thumbs.
 *
 * The keys do nothing while somebody types, or while a dialog is open. A thumb needs the focus on what it is for: a
 * letter that was meant for a field must not judge.
 */
export function useThumbKeys(control: ThumbControl, isActive: boolean): void {
  const latest = useRef(control);
  latest.current = control;
  useEffect(() => {
    if (!isActive) return;
    const handle = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]")) return;
      const places = [...document.querySelectorAll<HTMLElement>(JUDGED)];
      const place = document.activeElement?.closest<HTMLElement>(JUDGED) ?? null;
      const at = place === null ? -1 : places.indexOf(place);
      if (event.key === "j" || event.key === "k") {
        const next = places[event.key === "j" ? at + 1 : at - 1];
        next?.focus();
        next?.scrollIntoView({ block: "nearest" });
      } else if (place !== null && (event.key === "u" || event.key === "d")) {
        const up = event.key === "u";
        const target = place.dataset.judged || null;
        const thumb = latest.current.thumbOn(target);
        latest.current.press(target, up, thumb?.up === up ? (thumb.reason ?? undefined) : undefined);
      } else {
        return;
      }
      event.preventDefault();
    };
    addEventListener("keydown", handle);
    return () => removeEventListener("keydown", handle);
  }, [isActive]);
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
