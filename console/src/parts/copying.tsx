/** Copying: ids, addresses, and a request as a command line. */

import { useState } from "preact/hooks";

import { key } from "../service";
import { bodyOf, type Request } from "./asking";
import { Dialog } from "./basic";

interface Props {
  text: string;
  label: string;
  /** Said to screen readers in place of the label. */
  name?: string;
}

const SAID_MS = 1_600;

/** Copies a text; where the browser allows no copying, it shows the text to be copied by hand. */
export function Copy({ text, label, name }: Props) {
  const [state, setState] = useState<"" | "copied" | "by hand">("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setState("copied");
      setTimeout(() => setState(""), SAID_MS);
    } catch {
      setState("by hand"); // no clipboard without HTTPS, or the browser refused
    }
  };
  return (
    <>
      <button type="button" class="plain small" aria-label={name} onClick={() => void copy()}>
        {state === "copied" ? "Copied" : label}
      </button>
      {state === "by hand" && (
        <Dialog title={label} onClose={() => setState("")}>
          <p>The browser does not let this page copy. Copy it here:</p>
          <textarea readOnly rows={6} aria-label={label} value={text} onFocus={(event) => event.currentTarget.select()} />
        </Dialog>
      )}
    </>
  );
}

/** The request as a command; it names the variable of the access key, never the key. */
export function curl(collection: string, request: Request, worded: boolean): string {
  const body = JSON.stringify(bodyOf(collection, request)).replaceAll("'", "'\\''");
  return [
    `curl -sS ${location.origin}/${worded ? "answer" : "query"}`,
    ...(key.get() === undefined ? [] : ['-H "authorization: Bearer $ENGRAM_ACCESS_KEY"']),
    "-H 'content-type: application/json'",
    `-d '${body}'`,
  ].join(" \\\n  ");
}
