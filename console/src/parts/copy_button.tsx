/** Buttons that copy ids, addresses, and a question as a command line. */

import { useState } from "preact/hooks";

import { key, SERVICE } from "../service";
import { Dialog } from "./basic";
import { type Question, queryBody } from "./question";

interface Props {
  /** A function makes the text when the button is pressed. */
  text: string | (() => string);
  label: string;
  /** The thing that the text belongs to, for screen readers. */
  subject?: string;
}

const NOTICE_MS = 1_600;

/** Copies a text. If the browser does not allow that, a dialog shows the text to copy by hand. */
export function CopyButton({ text, label, subject }: Props) {
  const [isCopied, setIsCopied] = useState(false);
  const [byHand, setByHand] = useState<string | null>(null);
  const copy = async () => {
    const value = typeof text === "string" ? text : text();
    try {
      await navigator.clipboard.writeText(value);
      setIsCopied(true);
      setTimeout(() => setIsCopied(false), NOTICE_MS);
    } catch {
      setByHand(value); // no clipboard without HTTPS, or the browser refused
    }
  };
  return (
    <>
      <button type="button" class="plain small" aria-label={subject && !isCopied ? `${label}: ${subject}` : undefined} onClick={() => void copy()}>
        {isCopied ? "Copied" : label}
      </button>
      {byHand !== null && (
        <Dialog title={label} onClose={() => setByHand(null)}>
          <p>The browser does not let this page copy. Copy the text here:</p>
          <textarea readOnly rows={6} aria-label={label} value={byHand} onFocus={(event) => event.currentTarget.select()} />
        </Dialog>
      )}
    </>
  );
}

/** The question as a command. It names the variable of the access key, never the key. */
export function curlCommand(collection: string, question: Question): string {
  const body = JSON.stringify(queryBody(collection, question)).replaceAll("'", "'\\''");
  return [
    `curl -sS ${SERVICE}/${question.inWords ? "answer" : "query"}`,
    ...(key.get() === undefined ? [] : ['-H "authorization: Bearer $ENGRAM_ACCESS_KEY"']),
    "-H 'content-type: application/json'",
    `-d '${body}'`,
  ].join(" \\\n  ");
}
