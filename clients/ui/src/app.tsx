/** The frame around the screens: navigation, messages about the connection, keys and their help. */

import { useEffect, useRef, useState } from "preact/hooks";

import { Empty } from "./parts";
import { type Done, outcome, type Target, UndoBar } from "./restore";
import { SCREENS, type Screen, address, useEvents, useRequest, useRoute, useTransport } from "./state";
import { visible } from "./text";
import { Timeline } from "./timeline";

const TITLES: Record<Screen, string> = { timeline: "Timeline", now: "Now", hidden: "Hidden", health: "Health" };

/** The question that each screen answers. */
const QUESTIONS: Record<Screen, string> = {
  timeline: "What happened",
  now: "What agents see now",
  hidden: "What is hidden from agents, and why",
  health: "Whether everything works",
};

export function App() {
  const transport = useTransport();
  const [route, go] = useRoute();
  const [lost, setLost] = useState<"disconnected" | "unauthorized">();
  const [done, setDone] = useState<Done>();
  const [pending, setPending] = useState<Target>();
  const [problem, setProblem] = useState<string>();
  const help = useRef<HTMLDialogElement>(null);
  const { data: state } = useRequest("page/state", {}, ["didChangeServer"]);
  const root = route.query["root"];

  useEvents(["disconnected"], () => setLost("disconnected"));
  useEvents(["unauthorized"], () => setLost("unauthorized"));
  useEvents(["connected"], () => setLost(undefined));
  useEffect(() => {
    document.title = `${TITLES[route.screen]} · Sightline`;
  }, [route.screen]);

  /** Undoes at once if nothing is in the way, otherwise shows the preview. */
  const undo = async (target: Target): Promise<void> => {
    setProblem(undefined);
    const params = { undoId: target.id, ...(target.root && { root: target.root }) };
    try {
      const { conflicts, token } = await transport.rpc("sightline/previewRestore", { id: target.id, undo: true, ...(target.root && { root: target.root }) });
      if (conflicts.length > 0) {
        setPending(target);
        go("timeline", { id: target.id });
        return;
      }
      setDone(outcome(await transport.rpc("sightline/undoRestore", { ...params, token }), target));
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  const undoLast = (): void => {
    if (done?.undoId) {
      void undo({ id: done.undoId, title: "the last restore", undo: true, ...(done.root && { root: done.root }) });
    }
  };

  const keys = useRef<(key: string) => boolean>(() => false);
  keys.current = (key) => {
    const screen = SCREENS[Number(key) - 1];
    if (screen) {
      go(screen, root ? { root } : {});
    } else if (key === "?") {
      help.current?.showModal();
    } else if (key === "u") {
      undoLast();
    } else {
      return false;
    }
    return true;
  };
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
      if (!isTyping && !event.ctrlKey && !event.metaKey && !event.altKey && !help.current?.open && keys.current(event.key)) {
        event.preventDefault();
      }
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);

  const roots = state?.roots ?? [];
  return (
    <>
      <header class="top">
        <span class="brand">
          <img src="icon.svg" alt="" width="20" height="20" /> <span class="brand-name">Sightline</span>
        </span>
        {roots.length > 1 ? (
          <select class="roots" aria-label="Workspace folder" value={root ?? ""} onChange={({ currentTarget }) => go(route.screen, { ...route.query, root: currentTarget.value, id: undefined, compare: undefined })}>
            <option value="">All folders</option>
            {roots.map(({ uri, name }) => (
              <option key={uri} value={uri}>
                {visible(name)}
              </option>
            ))}
          </select>
        ) : (
          <span class="roots" title={visible(roots[0]?.path ?? "")}>
            {visible(roots[0]?.name ?? "")}
          </span>
        )}
        <nav aria-label="Screens">
          {SCREENS.map((screen) => (
            <a key={screen} href={address(screen, root ? { root } : {})} data-testid={`nav-${screen}`} title={QUESTIONS[screen]} aria-current={screen === route.screen ? "page" : undefined}>
              {TITLES[screen]}
            </a>
          ))}
        </nav>
        <span class="right top-state">
          {state?.readOnly && (
            <span class="badge" title="`--read-only`: restores and other changes are refused">
              read only
            </span>
          )}
          {state && (
            <span class="server" title={state.server ? "An editor is connected, with its unsaved text" : "No editor is connected: files are read from disk"}>
              <span class={state.server ? "dot dot-on" : "dot"} aria-hidden="true" /> {state.server ? "editor" : "no editor"}
            </span>
          )}
          <button type="button" class="quiet" aria-label="Keys and help" onClick={() => help.current?.showModal()}>
            ?
          </button>
        </span>
      </header>
      {lost === "disconnected" && (
        <div class="banner" role="alert">
          The connection is lost. Trying again … If you ended <code>sightline ui</code>, start it again and open its new address.
        </div>
      )}
      {lost === "unauthorized" && (
        <div class="banner" role="alert">
          This page belongs to an earlier start. Run <code>sightline ui</code> again and open the address that it prints.
        </div>
      )}
      {problem !== undefined && (
        <div class="banner" role="alert">
          {visible(problem)}{" "}
          <button type="button" class="quiet right" onClick={() => setProblem(undefined)} aria-label="Close this message">
            ✕
          </button>
        </div>
      )}
      {done && <UndoBar done={done} undo={undoLast} close={() => setDone(undefined)} />}
      <main>
        {route.screen === "timeline" && (
          <Timeline
            route={route}
            go={(query) => go("timeline", { root, ...query })}
            root={root}
            readOnly={state?.readOnly ?? false}
            onDone={setDone}
            pending={pending}
            closePending={() => setPending(undefined)}
          />
        )}
      </main>
      <Help dialog={help} />
    </>
  );
}

const KEYS: [keys: string, meaning: string][] = [
  ["1 2 3 4", "Timeline, Now, Hidden, Health"],
  ["j k  or  ↓ ↑", "next and previous entry"],
  ["Enter", "go to the files of the entry; open or close the diff of a file"],
  ["Shift + click", "compare two entries"],
  ["r", "restore: shows a preview first"],
  ["u", "undo the last restore"],
  ["/", "filter"],
  ["Esc", "close the preview or the comparison"],
  ["Tab", "next button or field"],
  ["?", "this help"],
];

function Help({ dialog }: { dialog: { current: HTMLDialogElement | null } }) {
  return (
    <dialog ref={dialog} aria-label="Keys">
      <h2>Keys</h2>
      <dl class="keys">
        {KEYS.map(([keys, meaning]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <p class="dim">Nothing on this page leaves this machine.</p>
      <form method="dialog">
        <button type="submit" autofocus>
          Close
        </button>
      </form>
    </dialog>
  );
}

/** Shown without a token. */
export function NoToken() {
  return (
    <Empty title="This address has no token.">
      <p>
        Run <code>sightline ui</code> in your project, and open the address that it prints.
      </p>
    </Empty>
  );
}
