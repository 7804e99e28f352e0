/** Starts the page. */

import "./style.css";

import { render } from "preact";

import { App } from "./app";
import { connect } from "./transport";

// Without a token, the document says what to do.
if (connect()) {
  const app = document.getElementById("app") as HTMLElement;
  app.textContent = "";
  render(<App />, app);
}
