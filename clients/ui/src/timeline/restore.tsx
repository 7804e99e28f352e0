/** The preview of a restore or an undo, and the bar that offers the undo. */

import { useEffect, useRef, useState } from "preact/hooks";

import type { FileHunks, PreviewRestoreParams, PreviewRestoreResult, RestoreCheckpointResult } from "../../../types/protocol";
import { Failure, Loading, Path } from "../parts";
import { transport } from "../state";
import { plural, visible } from "../text";
import { type RequestError, requestError } from "../transport";

/** What to restore. */
export interface Target {
  /** Checkpoint or turn, or the undo point with `undo`. */
  id: string;
  root?: string;
  /** What the state is called, such as `claude-1.3`. */
  title: string;
  isTurn?: boolean;
  undo?: boolean;
  /** Only these parts of files. */
  hunks?: FileHunks[];
}

/** A restore that was made. */
export interface Done {
  text: string;
  /** Undo point; absent if nothing changed. */
  undoId?: string;
  root?: string;
  failed: string[];
}

function describe(changes: readonly { action: "write" | "delete" }[], undo: boolean): string {
  const written = changes.filter(({ action }) => action === "write").length;
  const deleted = changes.length - written;
  const verb = undo ? "Undo: write" : "Restore";
  const parts = [written > 0 && `${verb} ${plural(written, "file")}`, deleted > 0 && `${written > 0 ? "delete" : undo ? "Undo: delete" : "Delete"} ${written > 0 ? deleted : plural(deleted, "file")}`];
  return parts.filter(Boolean).join(", ");
}

/** Returns the sentence about a restore that was made. */
export function outcome(result: RestoreCheckpointResult, target: Target): Done {
  const succeeded = result.outcomes.filter(({ ok }) => ok);
  const written = succeeded.filter(({ action }) => action === "write").length;
  const deleted = succeeded.length - written;
  const parts = [written > 0 && `${plural(written, "file")} written`, deleted > 0 && `${plural(deleted, "file")} deleted`].filter(Boolean);
  const what = target.undo ? "Restore undone" : `Restored ${target.isTurn ? `the state before ${target.title}` : target.title}`;
  return {
    text: `${what}: ${parts.length === 0 ? "nothing to change" : parts.join(", ")}.`,
    undoId: result.undoId,
    root: target.root,
    failed: result.outcomes.filter(({ ok }) => !ok).map(({ path, error }) => `${path}: ${error ?? "failed"}`),
  };
}

interface PanelProps {
  target: Target;
  close: () => void;
  done: (done: Done) => void;
}

/** The preview, with the choice of what to restore. */
export function RestorePanel({ target, close, done }: PanelProps) {
  const [all, setAll] = useState<PreviewRestoreResult>();
  const [chosen, setChosen] = useState<PreviewRestoreResult>();
  const [off, setOff] = useState<ReadonlySet<string>>(new Set());
  const [force, setForce] = useState(false);
  const [only, setOnly] = useState<"turn">();
  const [error, setError] = useState<RequestError>();
  const [isBusy, setBusy] = useState(false);
  const confirm = useRef<HTMLButtonElement>(null);
  const requests = useRef(0);

  const base: PreviewRestoreParams = {
    id: target.id,
    root: target.root,
    only,
    hunks: target.hunks,
  };

  /** Previews all of it, or only `paths`. */
  const preview = async (paths?: string[]): Promise<void> => {
    const request = ++requests.current;
    setChosen(undefined);
    try {
      const result = await transport.rpc("sightline/previewRestore", { ...base, undo: target.undo, paths });
      if (request !== requests.current) {
        return;
      }
      if (!paths) {
        setAll(result);
        setOff(new Set());
      }
      setChosen(result);
    } catch (failure) {
      if (request === requests.current) {
        setError(requestError(failure));
      }
    }
  };
  useEffect(() => {
    setAll(undefined);
    setError(undefined);
    setForce(false);
    void preview();
  }, [target, only]);
  useEffect(() => {
    // Only the first preview takes the focus, not a change of the choice.
    if (all && chosen === all) {
      confirm.current?.focus();
    }
  }, [all]);

  const choose = (paths: ReadonlySet<string>): void => {
    setOff(paths);
    setError(undefined);
    const on = all?.changes.map(({ path }) => path).filter((path) => !paths.has(path)) ?? [];
    if (paths.size === 0) {
      void preview();
    } else if (on.length > 0) {
      void preview(on);
    } else {
      requests.current++;
      setChosen({ changes: [], conflicts: [], token: "" });
    }
  };
  const restore = async (): Promise<void> => {
    if (!chosen) {
      return;
    }
    setBusy(true);
    setError(undefined);
    const paths = off.size > 0 ? chosen.changes.map(({ path }) => path) : undefined;
    const common = { root: target.root, paths, token: chosen.token, force };
    try {
      const result = target.undo
        ? await transport.rpc("sightline/undoRestore", { undoId: target.id, ...common })
        : await transport.rpc("sightline/restoreCheckpoint", { ...base, ...common });
      done(outcome(result, target));
    } catch (failure) {
      const problem = requestError(failure);
      setError(problem);
      if (problem.kind === "conflict") {
        await preview();
      }
    } finally {
      setBusy(false);
    }
  };

  const changes = chosen?.changes ?? [];
  const forced = all?.conflicts.filter(({ unsaved, changedSince }) => unsaved || changedSince) ?? [];
  const count = changes.length + (force ? forced.length : 0);
  const heading = target.undo ? "Undo the restore" : target.hunks ? `Take back parts of ${target.title}` : target.isTurn ? `Restore the state before ${target.title}` : `Restore ${target.title}`;
  return (
    <section class="panel" aria-label={heading}>
      <div class="files-head">
        <h3>{visible(heading)}</h3>
        <button class="quiet right" onClick={close}>
          Cancel <kbd>Esc</kbd>
        </button>
      </div>
      {target.isTurn && !target.hunks && (
        <fieldset class="buttons">
          <legend class="hidden-text">What to take back</legend>
          {([[undefined, "all that happened since"], ["turn", "only this turn; later edits stay"]] as const).map(([value, text]) => (
            <label class="change" key={text}>
              <input type="radio" name="only" checked={only === value} onChange={() => setOnly(value)} /> {text}
            </label>
          ))}
        </fieldset>
      )}
      {error && (error.kind === "conflict" ? <Changed error={error} /> : <Failure error={error} retry={() => (setError(undefined), void preview())} />)}
      {!all && !error && <Loading what="the preview" />}
      {all && (
        <>
          {all.warnings?.map((warning) => (
            <p class="warning" key={warning}>
              {visible(warning)}
            </p>
          ))}
          {all.changes.length === 0 ? (
            <p class="note">Nothing to change: the files are already in this state.</p>
          ) : (
            <p class="note">The current state is saved first, so you can undo this.</p>
          )}
          <ul class="changes">
            {all.changes.slice(0, 2000).map(({ path, action, reason }) => (
              <li key={path}>
                <label class="change">
                  <input type="checkbox" checked={!off.has(path)} onChange={() => choose(toggled(off, path))} />
                  <span class={`action action-${action}`}>{action}</span>
                  <Path path={path} />
                  <span class="dim right">{visible(reason)}</span>
                </label>
              </li>
            ))}
          </ul>
          {all.conflicts.length > 0 && (
            <>
              <h4>Left as {all.conflicts.length === 1 ? "it is" : "they are"}</h4>
              <ul class="changes">
                {all.conflicts.map(({ path, reason }) => (
                  <li class="change" key={path}>
                    <span class="action action-keep">keep</span>
                    <Path path={path} />
                    <span class="dim right">{visible(reason)}</span>
                  </li>
                ))}
              </ul>
              {forced.length > 0 && (
                <label class="change">
                  <input type="checkbox" checked={force} onChange={() => setForce(!force)} />
                  <span>Also replace {forced.length === 1 ? "this change" : `these ${forced.length} changes`}</span>
                </label>
              )}
            </>
          )}
          {(all.changes.length > 0 || forced.length > 0) && (
            <p class="buttons">
              <button class="primary" data-testid="confirm-restore" ref={confirm} disabled={!chosen || isBusy || count === 0} onClick={() => void restore()}>
                {isBusy ? "Restoring …" : count === 0 ? "Nothing is ticked" : describe([...changes, ...(force ? forced.map(() => ({ action: "write" as const })) : [])], target.undo ?? false)}
              </button>
            </p>
          )}
        </>
      )}
    </section>
  );
}

function toggled(set: ReadonlySet<string>, value: string): Set<string> {
  const next = new Set(set);
  if (!next.delete(value)) {
    next.add(value);
  }
  return next;
}

function Changed({ error }: { error: RequestError }) {
  return (
    <div class="failure" role="alert">
      <p>
        <strong>Conflict: nothing was changed.</strong> {visible(error.message)}
      </p>
      <p>The list below is a new preview.</p>
    </div>
  );
}

/** Says what was restored, and offers the undo until it is closed. */
export function UndoBar({ done, undo, close }: { done: Done; undo: () => void; close: () => void }) {
  return (
    <div class="bar" role="status">
      <span>
        {visible(done.text)}
        {done.failed.length > 0 && <strong> {plural(done.failed.length, "file")} failed: {visible(done.failed.join("; "))}</strong>}
      </span>
      <span class="right">
        {done.undoId && (
          <button class="primary" data-testid="undo" onClick={undo}>
            Undo <kbd>u</kbd>
          </button>
        )}
        <button class="quiet" onClick={close} aria-label="Close this message">
          ✕
        </button>
      </span>
    </div>
  );
}
