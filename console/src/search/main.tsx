import "../style/search.css";

import { render } from "preact";

import { searchHere } from "./address";
import { SearchPage } from "./page";
import { LANGUAGE, words } from "./words";

const form = document.querySelector("form");
const place = document.getElementById("answer");
if (form !== null && place !== null) {
  translatePage(form);
  // A touch screen would show its keyboard.
  if (searchHere().question === "" && matchMedia("(pointer: fine)").matches) (form.elements.namedItem("q") as HTMLInputElement).focus();
  render(<SearchPage form={form} />, place);
}

/** Put what the page itself says into the reader's language. */
function translatePage(form: HTMLFormElement): void {
  document.documentElement.lang = LANGUAGE;
  for (const one of document.querySelectorAll("h1, form button")) one.textContent = words.search;
  const field = form.elements.namedItem("q") as HTMLInputElement;
  field.placeholder = words.ask;
  field.ariaLabel = words.question;
}
