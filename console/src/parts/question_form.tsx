/** The form that asks a question: its words, its arm, and further options. */

import { useState } from "preact/hooks";

import { useShared } from "../state";
import { Choice, Waiting } from "./basic";
import { CopyButton, curlCommand } from "./copy_button";
import { Facets } from "./facets";
import { isTopK, MAX_TOP_K, parseFilter, type Question, TOP_K } from "./question";

interface Props {
  question: Question;
  onChange: (question: Question) => void;
  /** Ask the question as it is given here. */
  onAsk: (question: Question) => void;
  /** The words of the answered question; null if no answer is shown. */
  answered: string | null;
  isBusy: boolean;
}

export function QuestionForm({ question, onChange, onAsk, answered, isBusy }: Props) {
  const { collection, may, model } = useShared();
  const problem = filterProblem(question.filter);
  const isReady = question.text.trim() !== "" && problem === null && !isBusy;
  /** Change an option. An answer that is shown is asked for again with it. */
  const choose = (part: Partial<Question>) => {
    const chosen = { ...question, ...part };
    onChange(chosen);
    if (answered !== null && isReady) onAsk(chosen);
  };
  return (
    <form
      class="panel stack"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        if (!isReady) return;
        event.currentTarget.querySelector("input")?.blur(); // keys for the answer are no words of the question
        onAsk(question);
      }}
    >
      <div class="question">
        <input
          type="text"
          aria-label="Question"
          placeholder={`Ask “${collection}” a question`}
          value={question.text}
          autocomplete="off"
          maxLength={10_000}
          onInput={(event) => onChange({ ...question, text: event.currentTarget.value })}
        />
        <button class="main" disabled={!isReady}>
          {answered !== null && answered === question.text.trim() ? "Ask again" : "Ask"}
        </button>
      </div>
      <div class="row arms">
        <Choice
          legend="Memory"
          term="memory"
          name="memory"
          value={question.arm.memory}
          options={[["read", "On"], ["off", "Off"]]}
          onChoose={(memory) => choose({ arm: { ...question.arm, memory } })}
        />
        <Choice
          legend="Profile"
          term="profile"
          name="profile"
          value={question.arm.profile}
          options={[["default", "Default"], ["paper", "Paper"]]}
          onChoose={(profile) => choose({ arm: { ...question.arm, profile } })}
        />
        {model && (
          <Choice
            legend="Answer"
            name="in-words"
            value={question.inWords ? "words" : "passages"}
            options={[["passages", "Passages"], ["words", "In words"]]}
            onChoose={(form) => choose({ inWords: form === "words" })}
          />
        )}
        {isBusy && <Waiting what="Asking" />}
      </div>
      <details open={question.topK !== TOP_K || question.filter !== ""}>
        <summary>More options</summary>
        <div class="options">
          <TopK value={question.topK} onChange={(topK) => onChange({ ...question, topK })} />
          <label class="field">
            <span>Metadata that each passage must contain (JSON)</span>
            <input
              type="text"
              class="code"
              spellcheck={false}
              autocomplete="off"
              placeholder={'{"topic": "space"}'}
              value={question.filter}
              aria-invalid={problem !== null}
              onInput={(event) => onChange({ ...question, filter: event.currentTarget.value })}
            />
          </label>
          {problem === null && may("read") && (
            <Facets filter={question.filter} onChoose={(filter) => onChange({ ...question, filter })} />
          )}
          {problem === null ? (
            <CopyButton text={() => curlCommand(collection, question)} label="Copy as curl" />
          ) : (
            <p class="problem" role="alert">
              {problem}
            </p>
          )}
        </div>
      </details>
    </form>
  );
}

/** A number field. A number out of range stays in the field and is not passed on. */
function TopK({ value, onChange }: { value: number; onChange: (topK: number) => void }) {
  const [text, setText] = useState<string | null>(null);
  return (
    <label class="field">
      <span>Passages (1 to {MAX_TOP_K})</span>
      <input
        type="number"
        min={1}
        max={MAX_TOP_K}
        step={1}
        required
        value={text ?? String(value)}
        onInput={(event) => {
          setText(event.currentTarget.value);
          const topK = Number(event.currentTarget.value);
          if (isTopK(topK)) onChange(topK);
        }}
        onBlur={() => setText(null)}
      />
    </label>
  );
}

function filterProblem(filter: string): string | null {
  try {
    parseFilter(filter);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
