/** Starts the page. */

import "./style.css";

import { render } from "preact";

import { App, NoToken } from "./app";
import { TransportContext } from "./state";
import { connect } from "./transport";

const transport = connect();
render(
  transport ? (
    <TransportContext.Provider value={transport}>
      <App />
    </TransportContext.Provider>
  ) : (
    <NoToken />
  ),
  document.body,
);
