/** State that the screens share: the address, requests that repeat on events, stored choices. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { type Event, type RequestError, type Requests, type Transport, requestError } from "./transport";

/** The screens, in order. */
export const SCREENS = ["timeline", "now", "hidden", "health"] as const;

export type Screen = (typeof SCREENS)[number];

/** What the address shows: `#/timeline?agent=claude&id=claude-2.3`. */
export interface Route {
  screen: Screen;
  query: Readonly<Record<string, string>>;
}

function readRoute(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const screen = SCREENS.find((name) => name === path) ?? "timeline";
  return { screen, query: Object.fromEntries(new URLSearchParams(query)) };
}

/** Returns the address of a screen. Empty values are left out. */
export function address(screen: Screen, query: Record<string, string | undefined> = {}): string {
  const entries = Object.entries(query).filter((entry): entry is [string, string] => !!entry[1]);
  const text = new URLSearchParams(entries).toString();
  return `#/${screen}${text === "" ? "" : `?${text}`}`;
}

/** Returns what the address shows, and a function that changes it. */
export function useRoute(): [Route, (screen: Screen, query?: Record<string, string | undefined>) => void] {
  const [route, setRoute] = useState(readRoute);
  useEffect(() => {
    const update = (): void => setRoute(readRoute());
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  const go = useCallback((screen: Screen, query: Record<string, string | undefined> = {}): void => {
    const to = address(screen, query);
    if (to === location.hash) {
      return;
    }
    // A change of the selection is no step of the history; another screen is one.
    const isStep = readRoute().screen !== screen;
    history[isStep ? "pushState" : "replaceState"](null, "", to);
    setRoute(readRoute());
  }, []);
  return [route, go];
}

/** The connection. Set before the first component is rendered. */
export let transport: Transport;

export function setTransport(connected: Transport): void {
  transport = connected;
}

/** Calls `handle` for these events. */
export function useEvents(events: readonly Event[], handle: () => void): void {
  const latest = useRef(handle);
  latest.current = handle;
  const names = events.join();
  useEffect(() => transport.on((event) => names.split(",").includes(event) && latest.current()), [names]);
}

/** The answer to a request. */
export interface Answer<T> {
  data?: T;
  error?: RequestError;
  /** True until the first answer to these params. */
  loading: boolean;
  reload: () => void;
}

interface Stored {
  key: string;
  data?: unknown;
  error?: RequestError;
}

/**
 * Sends a request, and sends it again when the params change, when the connection is back, and on
 * `events`. Without params nothing is sent. The answer to earlier params is never returned.
 */
export function useRequest<M extends keyof Requests>(
  method: M,
  params: Requests[M]["params"] | undefined,
  events: readonly Event[] = [],
): Answer<Requests[M]["result"]> {
  const [stored, setStored] = useState<Stored>({ key: "" });
  const key = params === undefined ? "" : `${method} ${JSON.stringify(params)}`;
  const current = useRef({ key: "", sent: 0, isBusy: false, isStale: false });

  const send = useCallback((): void => {
    const state = current.current;
    if (state.key === "") {
      return;
    }
    // One request at a time; events that arrive before its answer need one more.
    if (state.isBusy) {
      state.isStale = true;
      return;
    }
    const sent = ++state.sent;
    const sentKey = state.key;
    state.isBusy = true;
    const json = sentKey.slice(method.length + 1);
    const finish = (answer: Omit<Stored, "key">): void => {
      if (sent !== state.sent) {
        return;
      }
      state.isBusy = false;
      setStored((before) => {
        // What was shown stays while the server cannot be reached.
        const keepsData = before.key === sentKey && answer.error?.kind === "unreachable";
        return { key: sentKey, data: keepsData ? before.data : undefined, ...answer };
      });
      if (state.isStale) {
        state.isStale = false;
        send();
      }
    };
    transport.rpc(method, JSON.parse(json) as Requests[M]["params"]).then(
      (data) => finish({ data }),
      (error: unknown) => finish({ error: requestError(error) }),
    );
  }, [method]);

  useEffect(() => {
    const state = current.current;
    state.key = key;
    state.sent++;
    state.isBusy = false;
    state.isStale = false;
    send();
  }, [key, send]);
  useEvents(["connected", ...events], send);

  const matches = key !== "" && stored.key === key;
  return {
    data: matches ? (stored.data as Requests[M]["result"]) : undefined,
    error: matches ? stored.error : undefined,
    loading: key !== "" && !matches,
    reload: send,
  };
}

/** Something that the user asked for: whether it is in progress, and why it failed. */
export interface Action {
  busy: boolean;
  problem?: string;
  run: (action: () => Promise<unknown>) => void;
}

export function useAction(): Action {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const run = (action: () => Promise<unknown>): void => {
    setBusy(true);
    setProblem(undefined);
    action()
      .catch((error: unknown) => setProblem(requestError(error).message))
      .finally(() => setBusy(false));
  };
  return { busy, problem, run };
}

/** Returns the width of the window, if it is below `limit`. */
export function useIsNarrow(limit: number): boolean {
  const query = `(max-width: ${limit - 1}px)`;
  const [isNarrow, setNarrow] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const update = (): void => setNarrow(media.matches);
    update();
    media.addEventListener("change", update);
    return () => media.removeEventListener("change", update);
  }, [query]);
  return isNarrow;
}
