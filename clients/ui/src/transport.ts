/** The connection to the server: HTTP on loopback in a browser, or a host such as an editor, which forwards to its server. */

import type { ErrorKind, Methods } from "../../types/protocol";
import type { PageMethods } from "./page";

/** All requests of the page. Those of the protocol have no prefix here. */
export type Requests = { [Method in keyof Methods as Method extends `sightline/${infer Name}` ? Name : never]: Methods[Method] } & PageMethods;

/** What changed. Events have no contents: the page asks again for what it shows. */
export type Event =
  | "didChangeAgents"
  | "didChangeBridges"
  | "didChangeContext"
  | "didChangeMcpServers"
  | "didChangeRules"
  | "didChangeServer"
  | "didChangeTurns"
  | "didCreateCheckpoint"
  | "decision"
  /** The connection was established again. */
  | "connected"
  | "disconnected"
  /** The token is wrong, and no further events follow. */
  | "unauthorized";

/** Why a request failed. */
export class RequestError extends Error {
  constructor(
    message: string,
    /** `unreachable` without an answer, `unauthorized` for a wrong token, `missing` for an unknown method. */
    readonly kind: ErrorKind | "unreachable" | "unauthorized" | "missing" = "internal",
  ) {
    super(message);
  }
}

/** Returns what was thrown as an error of a request. */
export function requestError(thrown: unknown): RequestError {
  return thrown instanceof RequestError ? thrown : new RequestError(String(thrown));
}

interface Answer {
  result?: unknown;
  error?: { code?: number; message?: string; data?: { kind?: ErrorKind } };
}

/** JSON-RPC's code of an unknown method. */
const METHOD_NOT_FOUND = -32601;

/** Returns the result of an answer, or throws its error. */
function resultOf({ result, error }: Answer): unknown {
  if (error) {
    throw new RequestError(error.message ?? "The request failed.", error.code === METHOD_NOT_FOUND ? "missing" : error.data?.kind);
  }
  return result;
}

const AGAIN = "run `sightline ui` again and open its new address.";

/** Why nothing is answered. */
export const LOST = {
  disconnected: `The connection is lost. If it does not come back, ${AGAIN}`,
  unauthorized: `This page belongs to an earlier start: ${AGAIN}`,
};

let send: (method: string, params: object) => Promise<unknown>;

/**
 * Sends a request.
 *
 * @throws {RequestError} if the server returns an error or cannot be reached
 */
export function rpc<M extends keyof Requests>(method: M, params: Requests[M]["params"]): Promise<Requests[M]["result"]> {
  return send(method.includes("/") ? method : `sightline/${method}`, params) as Promise<Requests[M]["result"]>;
}

/** Shows a file in the editor; `line` starts at 1. */
export function open(path: string, line?: number): Promise<unknown> {
  return rpc("openFile", { path, line: line || undefined });
}

const listeners = new Set<(event: Event) => void>();

/** Calls `listener` for each event. Returns a function that stops that. */
export function on(listener: (event: Event) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Calls the listeners. What the page does itself is an event, too. */
export function emit(event: Event): void {
  [...listeners].forEach((listener) => listener(event));
}

/** Number of attempts after which the pauses between them stay the same. */
const RETRIES = 5;

function pause(attempt: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 250 * 2 ** Math.min(attempt, RETRIES)));
}

/** `POST /rpc` and `GET /events` of `sightline ui`. */
function overHttp(token: string): void {
  const request = async (path: string, body?: string, attempt = 0): Promise<Response> => {
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
    let answer: Response;
    try {
      answer = await fetch(path, { method: body ? "POST" : "GET", body, headers, credentials: "omit", redirect: "error" });
    } catch {
      throw new RequestError(LOST.disconnected, "unreachable");
    }
    const { status } = answer;
    // Other pages have all connections for the moment.
    if (status === 503 && attempt < RETRIES) {
      await pause(attempt);
      return await request(path, body, attempt + 1);
    }
    if (status === 401 || status === 403) {
      throw new RequestError(LOST.unauthorized, "unauthorized");
    }
    return answer;
  };
  send = async (method, params) => {
    const answer = await request("rpc", JSON.stringify({ method, params }));
    return resultOf(await answer.json().catch(() => ({ error: { message: `The server answered with status ${answer.status}.` } })));
  };

  // What changed before events can be read is not announced, so the first connection counts as one that is back.
  let isConnected: boolean | undefined;
  const setConnected = (is: boolean): void => {
    if (isConnected !== is) {
      emit((isConnected = is) ? "connected" : "disconnected");
    }
  };
  // Reads events until the page is closed: one JSON object a line. Empty lines are signs of life.
  const follow = async (attempt: number): Promise<void> => {
    try {
      const { body } = await request("events");
      setConnected(true);
      attempt = 0;
      let rest = "";
      const reader = (body as ReadableStream<Uint8Array<ArrayBuffer>>).pipeThrough(new TextDecoderStream()).getReader();
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        const lines = (rest + read.value).split("\n");
        rest = lines.pop() ?? "";
        lines.filter(Boolean).forEach((line) => emit((JSON.parse(line) as { event: Event }).event));
      }
    } catch (error) {
      if (requestError(error).kind === "unauthorized") {
        emit("unauthorized");
        return;
      }
    }
    setConnected(false);
    await pause(attempt);
    void follow(attempt + 1);
  };
  void follow(0);
}

/** What answers in place of HTTP: the extension of an editor, or a test. It is there before the page. */
interface Host {
  send: (method: string, params: object) => Promise<Answer>;
  on: (listener: (event: Event) => void) => void;
}

declare const sightlineHost: Host | undefined;

/** Key of the token in the storage of the tab. */
const TOKEN = "sightline.token";

/** Connects to where the page runs. Removes the token from the address. Returns false without a token. */
export function connect(): boolean {
  if (typeof sightlineHost === "object") {
    const { on, send: ask } = sightlineHost;
    send = async (method, params) => resultOf(await ask(method, params));
    on(emit);
    return true;
  }
  const fragment = location.hash.slice(1);
  if (fragment && fragment[0] !== "/") {
    sessionStorage.setItem(TOKEN, fragment);
    history.replaceState(null, "", location.pathname);
  }
  const token = sessionStorage.getItem(TOKEN);
  if (token) {
    overHttp(token);
  }
  return token !== null;
}
