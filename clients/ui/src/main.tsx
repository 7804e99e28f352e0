/** Starts the page. */

import "./style.css";

import { render } from "preact";

import { App } from "./app";
import { setTransport } from "./state";
import { connect } from "./transport";

const transport = connect();
// Without a token, the document says what to do.
if (transport) {
  setTransport(transport);
  const app = document.getElementById("app") as HTMLElement;
  app.textContent = "";
  render(<App />, app);
}
