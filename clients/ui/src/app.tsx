/** The frame around the screens: navigation, messages about the connection, keys and their help. */

import { useEffect, useState } from "preact/hooks";

import { Alert, Code, Dot, Right, Select } from "./parts";
import { Health } from "./screens/health";
import { Hidden } from "./screens/hidden";
import { Now } from "./screens/now";
import { address, type Query, readRoute, SCREENS, useAction, useKeys, useRequest, useRoute } from "./state";
import { visible } from "./text";
import type { Target } from "./timeline/history";
import { type Done, outcome, UndoBar } from "./timeline/restore";
import { Timeline } from "./timeline/timeline";
import { emit, LOST, on, rpc } from "./transport";

export function App() {
  const [{ screen, query }, go] = useRoute();
  const [lost, setLost] = useState<keyof typeof LOST>();
  const [done, setDone] = useState<Done>();
  const [pending, setPending] = useState<Target>();
  const { problem, run } = useAction();
  const { data: state } = useRequest("page/state", {});
  const { root } = query;

  useEffect(() => on((event) => (event === "connected" ? setLost(undefined) : event in LOST && setLost(event as keyof typeof LOST))), []);
  useEffect(() => {
    document.title = `Sightline: ${screen}`;
  }, [screen]);

  const finish = (result: Done): void => {
    setDone(result);
    setPending(undefined);
    emit("didCreateCheckpoint");
  };
  /** Undoes at once if nothing is in the way, otherwise shows the preview. */
  const undo = async ({ undoId: id = "", root: folder }: Done): Promise<void> => {
    const target = { id, title: "the last restore", undo: true, root: folder };
    const { conflicts, token } = await rpc("previewRestore", { id, undo: true, root: folder });
    if (conflicts.length) {
      setPending(target);
      go("timeline", { root, id });
    } else {
      finish(outcome(await rpc("undoRestore", { undoId: id, root: folder, token }), target));
    }
  };
  const undoLast = (): void => {
    if (done?.undoId) {
      run(() => undo(done));
    }
  };

  /** The help, which is in the document from the start. */
  const help = (): void => document.querySelector("dialog")?.showModal();
  useKeys((event) => {
    const { key } = event;
    const to = SCREENS[Number(key) - 1];
    const action = to ? () => go(to, { root }) : { "?": help, u: undoLast }[key];
    if (action) {
      event.preventDefault();
      action();
    }
  });

  const roots = state?.roots ?? [];
  const readOnly = !!state?.readOnly;
  // A timer of a screen that was just left changes nothing.
  const set = (changes: Query): void | false => readRoute().screen === screen && go(screen, { root, ...changes });
  return (
    <>
      <header class="top">
        <span class="brand">
          <strong>Sightline</strong>
        </span>
        {roots.length > 1 ? (
          <Select label="Workspace folder" value={root} options={[["", "All folders"], ...roots.map(({ uri, name }): [string, string] => [uri, name])]} choose={(root) => set({ root })} />
        ) : (
          <span class="root" title={visible(roots[0]?.path ?? "")}>
            {roots[0]?.name}
          </span>
        )}
        <nav aria-label="Screens">
          {SCREENS.map((to) => (
            <a
              key={to}
              href={address(to, { root })}
              // An editor opens no links of a page, not even within it. A link that goes to another tab stays one.
              onClick={(event) => event.ctrlKey || event.metaKey || event.shiftKey || (event.preventDefault(), go(to, { root }))}
              data-testid={`nav-${to}`}
              aria-current={to === screen ? "page" : undefined}
            >
              {to}
            </a>
          ))}
        </nav>
        <Right>
          {readOnly && <span>read only</span>}
          {state && (
            <span class="server">
              <Dot ok={state.server || undefined} /> {state.server ? "editor" : "no editor"}
            </span>
          )}
          <button class="quiet" aria-label="Help" onClick={help}>
            ?
          </button>
        </Right>
      </header>
      {lost && (
        <p class="warning" role="alert">
          <Code text={LOST[lost]} />
        </p>
      )}
      <Alert error={problem} />
      {done && <UndoBar done={done} undo={undoLast} close={() => setDone(undefined)} />}
      <main>
        {screen === "now" && <Now query={query} go={set} state={state} />}
        {screen === "hidden" && <Hidden query={query} go={set} folders={roots} />}
        {screen === "health" && <Health state={state} root={root} />}
        {screen === "timeline" && <Timeline key={root} query={query} go={set} root={root} readOnly={readOnly} done={finish} pending={pending} />}
      </main>
    </>
  );
}
