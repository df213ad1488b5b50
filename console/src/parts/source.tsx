/** Where a passage comes from, and its text around a sentence. */

import { useState } from "preact/hooks";

import type { Schemas } from "../service";
import { Dialog, sayPeriod } from "./basic";
import { Icon } from "./icons";

/** The document and the headings above a passage, as one line. */
export const sourcePath = ({ document, heading }: Schemas["PassageSourceOut"]): string => [document, ...heading].join(" › ");

/** What replaces the document, when it holds, its page and link; nothing where there is none of these. */
export function SourceLine({ source }: { source: Schemas["PassageSourceOut"] }) {
  const period = sayPeriod(source.valid_from, source.valid_until);
  if (source.page === null && source.link === null && !source.replaced_by && !period) return null;
  return (
    <p class="quiet row source">
      {source.replaced_by && <strong>Replaced by {source.replaced_by}</strong>}
      {period && <span>Valid {period}</span>}
      {source.page !== null && <span>Page {source.page}</span>}
      {source.link !== null && (
        <a href={source.link} target="_blank" rel="noopener noreferrer">
          Open the document
        </a>
      )}
    </p>
  );
}

interface ContextProps {
  passage: Schemas["PassageHit"];
  sentence: Schemas["SentenceOut"];
}

/** A button that opens the passage's text with the sentence marked. */
export function ContextButton({ passage, sentence }: ContextProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="thumb" aria-label={`Text around: ${sentence.text}`} title="Text around it" onClick={() => setOpen(true)}>
        <Icon name="text" />
      </button>
      {isOpen && (
        <Dialog title={sourcePath(passage.source)} onClose={() => setOpen(false)}>
          <SourceLine source={passage.source} />
          <p class="context" lang={passage.source.language}>
            <MarkedText text={passage.text} sentence={sentence.text} />
          </p>
        </Dialog>
      )}
    </>
  );
}

/** The text with the sentence marked. Where it is not in the text as it stands, it follows. */
function MarkedText({ text, sentence }: { text: string; sentence: string }) {
  const at = text.indexOf(sentence);
  if (at < 0)
    return (
      <>
        {text} <mark class="strong">{sentence}</mark>
      </>
    );
  return (
    <>
      {text.slice(0, at)}
      <mark class="strong">{sentence}</mark>
      {text.slice(at + sentence.length)}
    </>
  );
}
