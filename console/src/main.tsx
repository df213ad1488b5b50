import "./style/base.css";
import "./style/parts.css";
import "./style/pages.css";

import { render } from "preact";

import { App } from "./app";

const place = document.getElementById("app");
if (place !== null) render(<App />, place);
