import "../style/search.css";

import { render } from "preact";

import { SearchPage } from "./page";

const form = document.querySelector("form");
const place = document.getElementById("answer");
if (form !== null && place !== null) render(<SearchPage form={form} />, place);
