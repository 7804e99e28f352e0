/** The preview of a restore or an undo, and the bar that offers the undo. */

import type { ComponentChild } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import type { RestoreCheckpointResult } from "../../../types/protocol";
import { Alert, Dim, Failure, Line, Note, Path, Pending, Quiet, Right } from "../parts";
import { useAction, useRequest } from "../state";
import { joined, plural } from "../text";
import { rpc } from "../transport";
import { toggled } from "./diffview";
import type { Target } from "./history";

/** A restore that was made. */
export interface Done {
  text: string;
  /** Undo point; absent if nothing changed. */
  undoId?: string | undefined;
  root: string | undefined;
}

/** Returns what the button does. */
function describe(changes: readonly { action: string }[], undo: boolean | undefined): string {
  const written = changes.filter(({ action }) => action === "write").length;
  const deleted = changes.length - written;
  return joined(", ", written && `${undo ? "Write" : "Restore"} ${plural(written, "file")}`, deleted && `${written ? "delete" : "Delete"} ${plural(deleted, "file")}`);
}

/** Returns what a restore did, with its undo point. */
export function outcome({ outcomes, undoId }: RestoreCheckpointResult, { title, isTurn, undo, root }: Target): Done {
  const failed = outcomes.filter(({ ok }) => !ok);
  return {
    text: `${undo ? "Restore undone" : `Restored ${isTurn ? `the state before ${title}` : title}`}: ${plural(outcomes.length - failed.length, "file")}.${failed.length ? ` Failed: ${failed.map(({ path, error }) => `${path}: ${error ?? "failed"}`).join("; ")}` : ""}`,
    undoId,
    root,
  };
}

interface PanelProps {
  target: Target;
  close: () => void;
  done: (done: Done) => void;
}

/** The preview, with the choice of what to restore. */
export function RestorePanel({ target, close, done }: PanelProps) {
  const { id, root, title, isTurn, undo, hunks } = target;
  const [off, setOff] = useState<readonly string[]>([]);
  const [force, setForce] = useState(false);
  const [only, setOnly] = useState<"turn">();
  const { busy, problem, run } = useAction();
  const confirm = useRef<HTMLButtonElement>(null);
  const base = { id, root, only, hunks, undo };
  const whole = useRequest("previewRestore", base);
  const all = whole.data;
  const forced = all?.conflicts.filter(({ unsaved, changedSince }) => unsaved || changedSince) ?? [];
  const paths = off.length ? [...(all?.changes ?? []), ...forced].map(({ path }) => path).filter((path) => !off.includes(path)) : undefined;
  const part = useRequest("previewRestore", paths?.length ? { ...base, paths } : undefined);
  const chosen = paths ? part.data : all;
  // Only the first preview takes the focus, not a change of the choice.
  useEffect(() => confirm.current?.focus(), [!all, only]);

  const restore = async (): Promise<void> => {
    const common = { paths, token: chosen?.token, force };
    try {
      done(outcome(await (undo ? rpc("undoRestore", { undoId: id, root, ...common }) : rpc("restoreCheckpoint", { ...base, ...common })), target));
    } catch (error) {
      await Promise.all([whole.reload(), part.reload()]);
      throw error;
    }
  };

  const will = [...(chosen?.changes ?? []), ...(force ? forced.map(() => ({ action: "write" })) : [])];
  const heading = undo ? "Undo the restore" : hunks ? `Revert parts of ${title}` : `Restore ${isTurn ? "the state before " : ""}${title}`;
  const row = (action: string, path: string, reason: string, box?: ComponentChild) => (
    <li key={path}>
      <label class="change">
        {box}
        <strong class={action}>{action}</strong>
        <Path path={path} />
        <Right>
          <Dim>{reason}</Dim>
        </Right>
      </label>
    </li>
  );
  return (
    <section class="panel">
      <Line>
        <h3>{heading}</h3>
        <Right>
          <Quiet run={close}>
            Cancel <kbd>Esc</kbd>
          </Quiet>
        </Right>
      </Line>
      {isTurn && !hunks && (
        <div class="line" role="radiogroup" aria-label="What to restore">
          {([[undefined, "all that happened since"], ["turn", "only this turn; later edits stay"]] as const).map(([value, text]) => (
            <label class="change" key={text}>
              <input type="radio" name="only" checked={only === value} onChange={() => (setOff([]), setOnly(value))} /> {text}
            </label>
          ))}
        </div>
      )}
      <Alert error={problem}>{problem?.kind === "conflict" && ". This is the new preview:"}</Alert>
      <Pending answer={whole} />
      {all && (
        <>
          <Note>{all.changes.length ? "The current state is saved first, so you can undo this." : "Nothing to change."}</Note>
          <ul class="changes">{all.changes.slice(0, 2000).map(({ path, action, reason }) => row(action, path, reason, <input type="checkbox" checked={!off.includes(path)} onChange={() => setOff(toggled(off, path))} />))}</ul>
          {all.conflicts.length > 0 && (
            <>
              <h4>Not changed</h4>
              <ul class="changes">{all.conflicts.map(({ path, reason }) => row("keep", path, reason))}</ul>
            </>
          )}
          {forced.length > 0 && (
            <label class="change">
              <input type="checkbox" checked={force} onChange={() => setForce(!force)} />
              Also replace {plural(forced.length, "file")} with later changes
            </label>
          )}
          {all.warnings?.map((warning) => <p class="warning">{warning}</p>)}
          {part.error && <Failure error={part.error} retry={part.reload} />}
          {all.changes.length + forced.length > 0 && (
            <button class="primary" data-testid="confirm-restore" ref={confirm} disabled={!chosen || busy || !will.length} onClick={() => run(restore)}>
              {busy ? "Restoring …" : will.length ? describe(will, undo) : "Nothing is ticked"}
            </button>
          )}
        </>
      )}
    </section>
  );
}

/** Says what was restored, and offers the undo until it is closed. */
export function UndoBar({ done, undo, close }: { done: Done; undo: () => void; close: () => void }) {
  return (
    <div class="bar" role="status">
      {done.text}
      <Right>
        {done.undoId && (
          <button class="primary" data-testid="undo" onClick={undo}>
            Undo <kbd>u</kbd>
          </button>
        )}
        <button class="quiet" onClick={close} aria-label="Close this message">
          ✕
        </button>
      </Right>
    </div>
  );
}
