/** Thumbs: one for the answer and one for each passage, stored as they are pressed. */

import { useEffect, useState } from "preact/hooks";

import { read, type Schemas } from "../service";
import { useShared } from "../state";
import { type Asked, NO_THUMBS, type Thumb, type Thumbs } from "./asking";
import { Problem } from "./basic";
import { Icon } from "./icons";

/** A passage's id, or null for the answer as a whole. */
export type Rated = string | null;

export interface Rating {
  thumb: (rated: Rated) => Thumb | null;
  /** Press a thumb; a pressed one is taken back. */
  press: (rated: Rated, up: boolean, reason?: string) => void;
  busy: boolean;
  error: unknown;
  again: () => void;
  status: string;
}

const LISTED = 200;
/** The judge of a verdict where no access key names one. */
const ANONYMOUS = "anonymous";
/** Probability that a thumb down on a passage speaks of each of its sentences, as of a rating that cites it. */
const WEAK = 0.5;

export const REASONS: readonly (readonly [string, string])[] = [
  ["missing", "Evidence is missing"],
  ["irrelevant", "Irrelevant"],
  ["wrong_answer", "The answer is wrong"],
  ["outdated", "Outdated"],
];

/** The judge's thumbs under the answer; `change` keeps what became of them. */
export function useThumbs(asked: Asked | null, change: (part: Partial<Asked>) => void): Rating {
  const { engram, collection, may, me } = useShared();
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState<{ error: unknown; again: () => void } | null>(null);
  const [status, setStatus] = useState("");
  const id = asked?.answer.query_id;
  const isRead = asked === null || asked.thumbs !== null || !may("judge");

  const restore = async () => {
    if (asked === null) return;
    setFailed(null);
    try {
      const params = { query: { collection, query_id: asked.answer.query_id, limit: LISTED } };
      const page = await read<Schemas["FeedbackPage"]>(engram.api.GET("/feedback", { params }));
      change({ thumbs: stored(page.feedback, asked.answer, me.judge ?? ANONYMOUS) });
    } catch (error) {
      setFailed({ error, again: () => void restore() });
    }
  };
  useEffect(() => {
    setStatus("");
    setFailed(null);
    if (!isRead) void restore();
  }, [id]);

  const thumbs = asked?.thumbs ?? NO_THUMBS;
  const thumb = (rated: Rated) => (rated === null ? thumbs.answer : (thumbs.passages.get(rated) ?? null));

  const press = async (rated: Rated, up: boolean, reason: string | null): Promise<void> => {
    if (asked === null || busy || asked.thumbs === null) return;
    const before = thumb(rated);
    const isTakenBack = before !== null && before.up === up && before.reason === reason;
    setBusy(true);
    setFailed(null);
    try {
      const now = isTakenBack ? await takeBack(rated, before) : await give(rated, up, reason, before);
      change({ thumbs: changed(thumbs, rated, now) });
      setStatus(now === null ? `Taken back: verdict ${before?.feedbackId}.` : `Stored as verdict ${now.feedbackId}. Press again to take it back.`);
    } catch (error) {
      setFailed({ error, again: () => void press(rated, up, reason) });
    } finally {
      setBusy(false);
    }
  };
  const takeBack = async (rated: Rated, before: Thumb): Promise<null> => {
    if (asked !== null && rated === null) await engram.thumb(asked.answer, { up: null });
    else await engram.revoke(before.feedbackId);
    return null;
  };
  const give = async (rated: Rated, up: boolean, reason: string | null, before: Thumb | null): Promise<Thumb> => {
    const { answer, words } = asked as Asked;
    if (rated === null) {
      const cited = up && words ? words.citations : [];
      const verdict = await engram.thumb(answer, { up, cited, ...(reason === null ? {} : { reason }) });
      return { feedbackId: verdict.feedback_id, up, reason };
    }
    if (before !== null) await engram.revoke(before.feedbackId);
    const sentences = answer.passages.find((one) => one.passage_id === rated)?.sentences ?? [];
    const verdict = await engram.feedback(
      answer.query_id,
      up ? { supporting_passages: [rated] } : { rejected: sentences.map(({ sentence_id }) => ({ sentence_id, examined: WEAK })) },
    );
    return { feedbackId: verdict.feedback_id, up, reason: null };
  };

  return {
    thumb,
    press: (rated, up, reason) => void press(rated, up, reason ?? null),
    busy: busy || (!isRead && failed === null),
    error: failed?.error,
    again: () => failed?.again(),
    status,
  };
}

function changed(thumbs: Thumbs, rated: Rated, thumb: Thumb | null): Thumbs {
  if (rated === null) return { ...thumbs, answer: thumb };
  const passages = new Map(thumbs.passages);
  if (thumb === null) passages.delete(rated);
  else passages.set(rated, thumb);
  return { ...thumbs, passages };
}

/** The judge's thumbs among the stored verdicts on the answer; the latest of each counts. */
function stored(verdicts: readonly Schemas["ListedFeedbackOut"][], answer: Schemas["QueryOut"], judge: string): Thumbs {
  let thumbs = NO_THUMBS;
  const holders = new Map(answer.passages.flatMap((passage) => passage.sentences.map((one) => [one.sentence_id, passage] as const)));
  for (const one of verdicts) {
    if (one.judge !== judge || one.status === "revoked") continue;
    const thumb = { feedbackId: one.feedback_id, reason: one.reason };
    if (one.rating === "up" || one.rating === "down") {
      thumbs = changed(thumbs, null, { ...thumb, up: one.rating === "up" });
      continue;
    }
    const [passage, ...others] = one.supporting_passages;
    if (passage !== undefined && others.length === 0 && one.sentences.every(({ role }) => role === "likely")) {
      thumbs = changed(thumbs, passage, { ...thumb, up: true });
    }
    const [first] = one.sentences;
    const holder = first && holders.get(first.sentence_id);
    const isWhole = holder !== undefined && (one.sentences_cut || one.sentences.length === holder.sentences.length);
    if (isWhole && one.sentences.every(({ role, sentence_id }) => role === "rejected" && holders.get(sentence_id) === holder)) {
      thumbs = changed(thumbs, holder.passage_id, { ...thumb, up: false });
    }
  }
  return thumbs;
}

/** The two thumbs of an answer or a passage; `name` says of what. */
export function ThumbPair({ rating, rated, name }: { rating: Rating; rated: Rated; name: string }) {
  const thumb = rating.thumb(rated);
  return (
    <span class="thumbs">
      {([true, false] as const).map((up) => (
        <button
          key={String(up)}
          type="button"
          class={`thumb ${up ? "supporting" : "rejected"}`}
          aria-pressed={thumb?.up === up}
          aria-label={`Thumb ${up ? "up" : "down"}: ${name}`}
          title={up ? "Thumb up (u)" : "Thumb down (d)"}
          onClick={() => rating.press(rated, up, thumb?.up === up ? (thumb.reason ?? undefined) : undefined)}
        >
          <Icon name={up ? "up" : "down"} />
        </button>
      ))}
    </span>
  );
}

/** The answer's own thumbs, and why it failed. */
export function AnswerThumbs({ rating }: { rating: Rating }) {
  const thumb = rating.thumb(null);
  return (
    <div class="panel rate" data-at={0} tabIndex={-1} role="group" aria-label="The answer as a whole">
      <div class="row">
        <strong>Did this answer help?</strong>
        <ThumbPair rating={rating} rated={null} name="the answer" />
        {thumb?.up === false && (
          <span class="row reasons" role="group" aria-label="Why not">
            {REASONS.map(([reason, label]) => (
              <button
                key={reason}
                type="button"
                class="small"
                aria-pressed={thumb.reason === reason}
                onClick={() => rating.press(null, false, reason === thumb.reason ? undefined : reason)}
              >
                {label}
              </button>
            ))}
          </span>
        )}
        <span class="quiet" role="status">
          {rating.status}
        </span>
      </div>
      <Problem error={rating.error} again={rating.again} />
    </div>
  );
}
