/** Small parts that pages are made of. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { problem } from "../service";
import type { Loaded } from "../state";
import { Term, type TermName } from "./term";

export function Head({ title, children, beside }: { title: string; children?: ComponentChildren; beside?: ComponentChildren }) {
  return (
    <header class="head">
      <div>
        <h1>{title}</h1>
        {children && <p>{children}</p>}
      </div>
      {beside}
    </header>
  );
}

interface PanelProps {
  title?: ComponentChildren;
  note?: ComponentChildren;
  class?: string;
  /** Of a panel that can be gone to. */
  id?: string;
  children: ComponentChildren;
}

export function Panel({ title, note, id, children, ...rest }: PanelProps) {
  return (
    <section class={`panel ${rest.class ?? ""}`} id={id} tabIndex={id ? -1 : undefined}>
      {(title || note) && (
        <header>
          {title && <h2>{title}</h2>}
          {note && <p>{note}</p>}
        </header>
      )}
      {children}
    </section>
  );
}

export function Problem({ error, again }: { error: unknown; again?: () => void }) {
  if (error === undefined || error === null) return null;
  return (
    <div class="note bad row" role="alert">
      <span>{problem(error)}</span>
      {again && (
        <button type="button" class="small" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children}
    </div>
  );
}

/** What was loaded, or that it loads, or what went wrong. What was there before stays while it loads anew. */
export function Await<T>({ of, children }: { of: Loaded<T>; children: (data: T) => ComponentChildren }) {
  if (of.error !== undefined) return <Problem error={of.error} again={of.again} />;
  if (of.data === undefined) return <Waiting />;
  return <>{children(of.data)}</>;
}

export function Waiting({ what = "Loading" }: { what?: string }) {
  return (
    <p class="row quiet" role="status">
      <span class="spin" aria-hidden="true" /> {what} …
    </p>
  );
}

interface ChoiceProps<T extends string> {
  legend: string;
  /** The term that explains the legend. */
  term?: TermName;
  name: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onChoose: (value: T) => void;
  /** Whether the legend is told to those who hear the page only. */
  quiet?: boolean;
}

export function Choice<T extends string>({ legend, term, name, value, options, onChoose, quiet }: ChoiceProps<T>) {
  return (
    <fieldset class="choice">
      <legend class={quiet ? "hidden" : ""}>{term ? <Term name={term}>{legend}</Term> : legend}</legend>
      <div>
        {options.map(([option, label]) => (
          <label key={option}>
            <input type="radio" name={name} checked={option === value} onChange={() => onChoose(option)} />
            {label}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** A length from `least` to `most`, from 0 where that lies between. */
export function Bar({ value, least = 0, most = 1, tone }: { value: number; least?: number; most?: number; tone?: string }) {
  const span = most - least || 1;
  const at = (number: number) => ((Math.min(Math.max(number, least), most) - least) / span) * 100;
  const [zero, end] = [at(0), at(value)];
  const color = tone ?? (value < 0 ? "bad" : "accent");
  return (
    <span class="track" aria-hidden="true">
      <svg viewBox="0 0 100 10" preserveAspectRatio="none">
        <rect class={`fill-${color}`} x={Math.min(zero, end)} width={Math.max(Math.abs(end - zero), 0.4)} y="0" height="10" />
        {least < 0 && <rect class="fill-soft" x={zero - 0.15} width="0.3" y="0" height="10" />}
      </svg>
    </span>
  );
}

export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
  const self = useRef<HTMLDialogElement>(null);
  useEffect(() => self.current?.showModal(), []);
  return (
    <dialog ref={self} onClose={onClose} aria-label={title}>
      <div class="stack">
        <div class="head" style={{ marginBottom: 0 }}>
          <h2>{title}</h2>
          <button type="button" class="small" onClick={() => self.current?.close()}>
            Close
          </button>
        </div>
        {children}
      </div>
    </dialog>
  );
}

const plural = new Intl.PluralRules("en");

/** "1 verdict", "2 verdicts". */
export function counted(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString("en")} ${plural.select(n) === "one" ? one : many}`;
}

export const percent = (share: number): string => `${Math.round(share * 100)} %`;
export const figure = (value: number, digits = 2): string => (Object.is(value, -0) ? 0 : value).toFixed(digits).replace("-", "−");
export const signed = (value: number, digits = 2): string => (value > 0 ? `+${figure(value, digits)}` : figure(value, digits));

/** From when until when something holds, by days; empty if nothing tells it. */
export function sayPeriod(from: string | null, to: string | null): string {
  if (to === null) return from === null ? "" : `since ${from}`;
  return from === null ? `until ${to}` : `${from} to ${to}`;
}

const moments = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
export const moment = (iso: string): string => moments.format(new Date(iso));
