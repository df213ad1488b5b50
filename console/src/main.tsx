import "./style/base.css";
import "./style/controls.css";
import "./style/parts.css";
import "./style/ask.css";
import "./style/pages.css";

import { render } from "preact";

import { App } from "./app";

const place = document.getElementById("app");
if (place !== null) render(<App />, place);
