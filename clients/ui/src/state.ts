/** State that the screens share: the address, requests that repeat on events, actions. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { type Event, on, type RequestError, requestError, type Requests, rpc } from "./transport";

/** The screens, in order. */
export const SCREENS = ["timeline", "now", "hidden", "health"] as const;

export type Screen = (typeof SCREENS)[number];

/** The part of the address after `?`. */
export type Query = Record<string, string | undefined>;

/** What the address shows: `#/timeline?agent=claude&id=claude-2.3`. */
export interface Route {
  screen: Screen;
  query: Query;
}

/** Returns what the address shows now. */
export function readRoute(): Route {
  const [path = "", query] = location.hash.slice(2).split("?");
  return { screen: SCREENS.find((name) => name === path) ?? "timeline", query: Object.fromEntries(new URLSearchParams(query)) };
}

/** Returns the address of a screen. Empty values are left out. */
export function address(screen: Screen, query: Query): string {
  const text = new URLSearchParams(Object.entries(query).filter((entry): entry is [string, string] => !!entry[1])).toString();
  return `#/${screen}${text && `?${text}`}`;
}

/** Returns what the address shows, and a function that changes it. */
export function useRoute(): [Route, (screen: Screen, query: Query) => void] {
  const [route, setRoute] = useState(readRoute);
  const update = (): void => setRoute(readRoute());
  useEffect(() => addEventListener("hashchange", update), []);
  const go = (screen: Screen, query: Query): void => {
    const to = address(screen, query);
    if (to !== location.hash) {
      // A change of the selection is no step of the history; another screen is one.
      history[readRoute().screen === screen ? "replaceState" : "pushState"](null, "", to);
      update();
    }
  };
  return [route, go];
}

/** Returns a function that is the same in all renderings, and calls the newest `handle`. */
export function useLatest<A extends unknown[], R>(handle: (...args: A) => R): (...args: A) => R {
  const latest = useRef(handle);
  latest.current = handle;
  return useRef((...args: A) => latest.current(...args)).current;
}

/** Calls `handle` for keys without a modifier, unless the help is open. */
export function useKeys(handle: (event: KeyboardEvent) => void): void {
  const latest = useLatest(handle);
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      const { target, key } = event;
      const isTyping = target instanceof HTMLSelectElement || (target instanceof HTMLInputElement && !/^(checkbox|radio)$/.test(target.type));
      if (!event.ctrlKey && !event.metaKey && !event.altKey && (!isTyping || key === "Escape") && !document.querySelector("dialog[open]")) {
        latest(event);
      }
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);
}

/** The answer to a request. */
export interface Answer<T> {
  data?: T;
  error?: RequestError;
  /** True until the first answer to these params. */
  loading: boolean;
  reload: () => Promise<void>;
}

interface Stored {
  key?: string;
  data?: unknown;
  error?: RequestError;
}

/**
 * Sends a request, and sends it again when the params change, when the connection is back, when another
 * server answers, and on `events`. Without params nothing is sent. The answer to earlier params is returned only with `keeps`.
 */
export function useRequest<M extends keyof Requests>(
  method: M,
  params: Requests[M]["params"] | undefined,
  events: readonly Event[] = [],
  keeps = false,
): Answer<Requests[M]["result"]> {
  const [stored, setStored] = useState<Stored>({});
  const key = params && JSON.stringify(params);
  // What is in progress for the params.
  const current = useRef({ isBusy: false, isStale: false });
  const load = useLatest(async (): Promise<void> => {
    const mine = current.current;
    // One request at a time; events that arrive before its answer need one more.
    mine.isStale = mine.isBusy;
    if (!params || mine.isBusy) {
      return;
    }
    mine.isBusy = true;
    const answer: Stored = await rpc(method, params).then(
      (data) => ({ data }),
      (error: unknown) => ({ error: requestError(error) }),
    );
    if (mine === current.current) {
      mine.isBusy = false;
      // What was shown stays while the server cannot be reached.
      setStored((before) => ({ ...(answer.error?.kind === "unreachable" && before.key === key && before), ...answer, key }));
      if (mine.isStale) {
        await load();
      }
    }
  });
  // Before the first paint, which is no use without the answer.
  useLayoutEffect(() => {
    current.current = { isBusy: false, isStale: false };
    void load();
  }, [key]);
  useEffect(() => on((event) => ["connected", "didChangeServer", ...events].includes(event) && void load()), []);

  const isCurrent = key !== undefined && stored.key === key;
  return {
    ...((isCurrent || keeps) && (stored as { data?: Requests[M]["result"] })),
    loading: key !== undefined && !isCurrent,
    reload: load,
  };
}

/** Something that the user asked for: whether it is in progress, and why it failed. */
export interface Action {
  busy: boolean;
  problem: RequestError | undefined;
  run: (action: () => Promise<unknown>) => void;
}

export function useAction(): Action {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<RequestError>();
  const run = (action: () => Promise<unknown>): void => {
    setBusy(true);
    setProblem(undefined);
    action()
      .catch((error: unknown) => setProblem(requestError(error)))
      .finally(() => setBusy(false));
  };
  return { busy, problem, run };
}
