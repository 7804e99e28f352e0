/** Starts the page. */

import "./style.css";

import { render } from "preact";

import { App, NoToken } from "./app";
import { setTransport } from "./state";
import { connect } from "./transport";

const transport = connect();
if (transport) {
  setTransport(transport);
}
render(transport ? <App /> : <NoToken />, document.body);
