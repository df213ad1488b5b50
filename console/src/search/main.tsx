import "../style/search.css";

import { render } from "preact";

import { searchHere } from "./address";
import { SearchPage } from "./page";
import { boxOf, prepareBox } from "./question_box";
import { LANGUAGE, words } from "./words";

const form = document.querySelector("form");
const place = document.getElementById("answer");
if (form !== null && place !== null) {
  translatePage(form);
  prepareBox(form);
  // A touch screen would show its keyboard.
  if (searchHere().question === "" && matchMedia("(pointer: fine)").matches) boxOf(form).focus();
  render(<SearchPage form={form} />, place);
}

/** Put what the page itself says into the reader's language. */
function translatePage(form: HTMLFormElement): void {
  document.documentElement.lang = LANGUAGE;
  for (const one of document.querySelectorAll("h1, form button")) one.textContent = words.search;
  const field = boxOf(form);
  field.placeholder = words.ask;
  field.ariaLabel = words.question;
}
