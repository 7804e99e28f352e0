/**
 * The connection to the server: HTTP on loopback in a browser, or messages to the extension in a
 * webview of VS Code, which forwards them to its server.
 */

import type { ErrorKind, Methods } from "../../types/protocol";
import type { PageMethods } from "./page";

/** All requests of the page. */
export type Requests = Methods & PageMethods;

/** What changed. Events have no contents: the page asks again for what it shows. */
export type Event =
  | "didChangeAgents"
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
    readonly kind: ErrorKind | "unreachable" | "unauthorized" | "missing" | "internal",
  ) {
    super(message);
  }
}

interface ErrorBody {
  code?: number;
  message?: string;
  data?: { kind?: ErrorKind };
}

/** JSON-RPC's code of an unknown method. */
const METHOD_NOT_FOUND = -32601;

/** Delays between attempts, in milliseconds. The last one repeats. */
const RETRIES = [250, 500, 1000, 2000, 5000];

function pause(attempt: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, RETRIES[Math.min(attempt, RETRIES.length - 1)]));
}

/** Returns what was thrown as an error of a request. */
export function requestError(thrown: unknown): RequestError {
  return thrown instanceof RequestError ? thrown : new RequestError(String(thrown), "internal");
}

function answeredError({ code, message, data }: ErrorBody): RequestError {
  const kind = code === METHOD_NOT_FOUND ? "missing" : (data?.kind ?? "internal");
  return new RequestError(message ?? "The request failed.", kind);
}

/** Sends requests and receives events. */
export abstract class Transport {
  private readonly listeners = new Set<(event: Event) => void>();

  /**
   * Sends a request.
   *
   * @throws {RequestError} if the server returns an error or cannot be reached
   */
  abstract rpc<M extends keyof Requests>(method: M, params: Requests[M]["params"]): Promise<Requests[M]["result"]>;

  /** Calls `listener` for each event. Returns a function that stops that. */
  on(listener: (event: Event) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Shows a file in the editor; `line` starts at 1. */
  async open(path: string, line?: number): Promise<void> {
    await this.rpc("sightline/openFile", { path, line: line || undefined });
  }

  /** Calls the listeners. What the page does itself is an event, too. */
  emit(event: Event): void {
    for (const listener of [...this.listeners]) {
      listener(event);
    }
  }
}

/** `POST /rpc` and `GET /events` of `sightline ui`. */
export class HttpTransport extends Transport {
  private connected = true;

  constructor(private readonly token: string) {
    super();
    void this.follow();
  }

  async rpc<M extends keyof Requests>(method: M, params: Requests[M]["params"]): Promise<Requests[M]["result"]> {
    const body = JSON.stringify({ method, params });
    const answer = await this.fetch("rpc", { method: "POST", body, headers: { "Content-Type": "application/json" } });
    const json = (await answer.json().catch(() => undefined)) as { result?: unknown; error?: ErrorBody };
    if (json?.error) {
      throw answeredError(json.error);
    }
    if (!answer.ok || json === undefined) {
      throw new RequestError(`The server answered with status ${answer.status}.`, "internal");
    }
    return json.result as Requests[M]["result"];
  }

  private async fetch(path: string, init: RequestInit, attempt = 0): Promise<Response> {
    const headers = { ...init.headers, Authorization: `Bearer ${this.token}` };
    let answer: Response;
    try {
      answer = await fetch(path, { ...init, headers, cache: "no-store", credentials: "omit", redirect: "error" });
    } catch {
      // The server may just have closed an idle connection. What only reads is asked again.
      if (attempt < 2 && /"sightline\/(list|diff|preview|check|env|blame|read)|"page\//.test(String(init.body))) {
        await pause(attempt);
        return await this.fetch(path, init, attempt + 1);
      }
      throw new RequestError("Sightline cannot be reached.", "unreachable");
    }
    // Other pages have all connections; they are closed when they are idle.
    if (answer.status === 503 && attempt < RETRIES.length) {
      await pause(attempt);
      return await this.fetch(path, init, attempt + 1);
    }
    if (answer.status === 401 || answer.status === 403) {
      throw new RequestError("This address belongs to an earlier start of `sightline ui`.", "unauthorized");
    }
    return answer;
  }

  private setConnected(connected: boolean): void {
    if (this.connected !== connected) {
      this.connected = connected;
      this.emit(connected ? "connected" : "disconnected");
    }
  }

  /** Reads events until the page is closed. */
  private async follow(): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        const answer = await this.fetch("events", {});
        if (!answer.ok || answer.body === null) {
          throw new RequestError(`The server answered with status ${answer.status}.`, "internal");
        }
        this.setConnected(true);
        attempt = 0;
        await this.read(answer.body);
        this.setConnected(false);
      } catch (error) {
        if (error instanceof RequestError && error.kind === "unauthorized") {
          this.emit("unauthorized");
          return;
        }
        this.setConnected(false);
      }
      await pause(attempt);
    }
  }

  /** Reads events: one JSON object a line. */
  private async read(body: ReadableStream<Uint8Array>): Promise<void> {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        // Empty lines are signs of life.
        if (line.trim() !== "") {
          this.emit((JSON.parse(line) as { event: Event }).event);
        }
      }
    }
  }
}

/** The part of VS Code's webview interface that is used here. */
interface WebviewApi {
  postMessage(message: unknown): void;
}

declare const acquireVsCodeApi: (() => WebviewApi) | undefined;

type FromEditor = { id: number; result?: unknown; error?: ErrorBody } | { event: Event };

/** Messages to the extension, which owns the connection to the server. */
export class WebviewTransport extends Transport {
  private readonly waiting = new Map<number, { resolve: (value: never) => void; reject: (error: RequestError) => void }>();
  private ids = 0;

  constructor(private readonly api: WebviewApi) {
    super();
    addEventListener("message", ({ data }: MessageEvent<FromEditor>) => this.receive(data));
  }

  rpc<M extends keyof Requests>(method: M, params: Requests[M]["params"]): Promise<Requests[M]["result"]> {
    const id = ++this.ids;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.api.postMessage({ id, method, params });
    });
  }

  private receive(data: FromEditor): void {
    if (!("id" in data)) {
      this.emit(data.event);
      return;
    }
    const waiting = this.waiting.get(data.id);
    this.waiting.delete(data.id);
    if (data.error) {
      waiting?.reject(answeredError(data.error));
    } else {
      waiting?.resolve(data.result as never);
    }
  }
}

/** Key of the token in the storage of the tab. */
const TOKEN = "sightline.token";

/**
 * Returns the transport for where the page runs, or `undefined` without a token. Removes the token
 * from the address.
 */
export function connect(): Transport | undefined {
  if (typeof acquireVsCodeApi === "function") {
    return new WebviewTransport(acquireVsCodeApi());
  }
  const fragment = location.hash.slice(1);
  if (fragment !== "" && !fragment.startsWith("/")) {
    sessionStorage.setItem(TOKEN, fragment);
    history.replaceState(null, "", location.pathname);
  }
  const token = sessionStorage.getItem(TOKEN);
  return token === null ? undefined : new HttpTransport(token);
}
