/** The frame around the screens: navigation, messages about the connection, keys and their help. */

import { useEffect, useRef, useState } from "preact/hooks";

import { Alert, Dot, Select } from "./parts";
import { Health } from "./screens/health";
import { Hidden } from "./screens/hidden";
import { Now } from "./screens/now";
import { type Done, outcome, type Target, UndoBar } from "./timeline/restore";
import { SCREENS, type Screen, address, useEvents, useRequest, useAction, useRoute, transport } from "./state";
import { visible } from "./text";
import { Timeline } from "./timeline/timeline";

const TITLES: Record<Screen, string> = { timeline: "Timeline", now: "Now", hidden: "Hidden", health: "Health" };

/** The question that each screen answers. */
const QUESTIONS: Record<Screen, string> = {
  timeline: "What happened",
  now: "What agents see now",
  hidden: "What is hidden from agents, and why",
  health: "Whether everything works",
};

/** The help, which is in the document from the start. */
const help = document.querySelector("dialog") as HTMLDialogElement;

export function App() {
  const [route, go] = useRoute();
  const [lost, setLost] = useState<"disconnected" | "unauthorized">();
  const [done, setDone] = useState<Done>();
  const [pending, setPending] = useState<Target>();
  const { problem, run } = useAction();
  const { data: state } = useRequest("page/state", {}, ["didChangeServer"]);
  const root = route.query["root"];

  useEvents(["disconnected"], () => setLost("disconnected"));
  useEvents(["unauthorized"], () => setLost("unauthorized"));
  useEvents(["connected"], () => setLost(undefined));
  useEffect(() => {
    document.title = `${TITLES[route.screen]} · Sightline`;
  }, [route.screen]);

  const finish = (result: Done): void => {
    setDone(result);
    transport.emit("didCreateCheckpoint");
  };
  /** Undoes at once if nothing is in the way, otherwise shows the preview. */
  const undo = async (target: Target): Promise<void> => {
    const { id, root: folder } = target;
    const { conflicts, token } = await transport.rpc("sightline/previewRestore", { id, undo: true, root: folder });
    if (conflicts.length > 0) {
      setPending(target);
      go("timeline", { id });
    } else {
      finish(outcome(await transport.rpc("sightline/undoRestore", { undoId: id, root: folder, token }), target));
    }
  };
  const undoLast = (): void => {
    if (done?.undoId) {
      const target = { id: done.undoId, title: "the last restore", undo: true, root: done.root };
      run(() => undo(target));
    }
  };

  const keys = useRef<(key: string) => boolean>(() => false);
  keys.current = (key) => {
    const screen = SCREENS[Number(key) - 1];
    if (screen) {
      go(screen, root ? { root } : {});
    } else if (key === "?") {
      help.showModal();
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
      if (!isTyping && !event.ctrlKey && !event.metaKey && !event.altKey && !help.open && keys.current(event.key)) {
        event.preventDefault();
      }
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);

  /** An editor opens no links of a page, not even within it. A link that goes to another tab stays one. */
  const follow = (event: MouseEvent, screen: Screen): void => {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      go(screen, { root });
    }
  };
  const roots = state?.roots ?? [];
  return (
    <>
      <header class="top">
        <span class="brand">
          <span class="brand-name">Sightline</span>
        </span>
        {roots.length > 1 ? (
          <Select label="Workspace folder" value={root} options={[["", "All folders"], ...roots.map(({ uri, name }) => [uri, name] as const)]} choose={(uri) => go(route.screen, { ...route.query, root: uri, id: undefined, compare: undefined })} />
        ) : (
          <span class="roots" title={visible(roots[0]?.path ?? "")}>
            {visible(roots[0]?.name ?? "")}
          </span>
        )}
        <nav aria-label="Screens">
          {SCREENS.map((screen) => (
            <a key={screen} href={address(screen, { root })} onClick={(event) => follow(event, screen)} data-testid={`nav-${screen}`} title={QUESTIONS[screen]} aria-current={screen === route.screen ? "page" : undefined}>
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
              <Dot ok={state.server || undefined} /> {state.server ? "editor" : "no editor"}
            </span>
          )}
          <button class="quiet" aria-label="Keys and help" onClick={() => help.showModal()}>
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
      <Alert text={problem} />
      {done && <UndoBar done={done} undo={undoLast} close={() => setDone(undefined)} />}
      <main>
        {route.screen === "now" && <Now route={route} go={(query) => go("now", { root, ...query })} />}
        {route.screen === "hidden" && <Hidden route={route} go={(query) => go("hidden", { root, ...query })} root={root} folders={roots} />}
        {route.screen === "health" && <Health state={state} root={root} />}
        {route.screen === "timeline" && (
          <Timeline
            route={route}
            go={(query) => go("timeline", { root, ...query })}
            root={root}
            readOnly={state?.readOnly ?? false}
            onDone={finish}
            pending={pending}
            closePending={() => setPending(undefined)}
          />
        )}
      </main>
    </>
  );
}
