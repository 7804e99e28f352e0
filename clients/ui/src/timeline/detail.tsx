/** The details of an entry of the timeline: its files, and what can be done with it. */

import { useState } from "preact/hooks";

import type { Checkpoint } from "../../../types/protocol";
import { Blame } from "./blame";
import { type Comparison, Files, type Parts } from "./diffview";
import { type Entry, type History, checkpointTitle, restoreTitle, states, title } from "./history";
import { Alert, CopyButton, Select } from "../parts";
import { type Done, RestorePanel, type Target } from "./restore";
import { transport, useAction } from "../state";
import { clock, duration, plural, size, visible, when } from "../text";

export interface DetailProps {
  entry: Entry;
  /** The entry to compare with. */
  other: Entry | undefined;
  closeOther: () => void;
  history: History;
  readOnly: boolean;
  target: Target | undefined;
  /** Starts the restore, of everything or of parts. */
  openTurn: (name: string) => void;
  startRestore: (target?: Target) => void;
  closeRestore: () => void;
  onDone: (done: Done) => void;
}

/** What is compared: the entry itself, or a side of it with the workspace. */
type Mode = "itself" | "sinceBefore" | "sinceAfter";

export function Detail(props: DetailProps) {
  const { entry, other, target, history } = props;
  const [mode, setMode] = useState<Mode>("itself");
  const { problem, run } = useAction();
  const root = rootOf(entry);
  const [parts, setParts] = useState<Parts>({});
  const [blamed, setBlamed] = useState<string>();
  const { comparison, note } = other ? between(entry, other) : compared(entry, mode, history);
  // Without another side, a part can be taken back from what there is now.
  const isPartial = !props.readOnly && comparison !== undefined && comparison.to === undefined;
  const hunks = isPartial ? Object.entries(parts).flatMap(([path, hunks]) => (hunks.length > 0 ? { path, hunks: [...hunks] } : [])) : [];
  const open = (path: string): void => run(() => transport.open(path));
  return (
    <article class="detail">
      <Head entry={entry} />
      {!other && <Actions {...props} mode={mode} setMode={(mode) => (setParts({}), setMode(mode))} />}
      {other && (
        <div class="compare">
          <span>
            Compared with <strong>{visible(title(other))}</strong>: {visible(note ?? "")}
          </span>
          <button class="right" onClick={props.closeOther}>
            End comparison <kbd>Esc</kbd>
          </button>
        </div>
      )}
      <Alert text={problem} />
      {target && <RestorePanel target={target} close={props.closeRestore} done={props.onDone} />}
      {!other && note !== undefined && <p class="note">{visible(note)}</p>}
      {hunks.length > 0 && comparison && blamed === undefined && (
        <p class="buttons">
          <button class="primary" onClick={() => props.startRestore({ id: comparison.from, root, title: title(entry), isTurn: entry.kind === "turn", hunks })}>
            Take back {plural(hunks.reduce((sum, file) => sum + file.hunks.length, 0), "part")} …
          </button>
        </p>
      )}
      {blamed !== undefined && <Blame path={blamed} root={root} close={() => setBlamed(undefined)} openTurn={props.openTurn} />}
      {comparison && blamed === undefined && <Files comparison={{ ...comparison, root }} actions={{ open, blame: setBlamed }} choice={isPartial ? { parts, choose: setParts } : undefined} moves={comparison.to === undefined && comparison.from !== title(entry)} />}
      <Skipped entry={entry} history={history} />
    </article>
  );
}

function rootOf(entry: Entry): string {
  return "turn" in entry ? entry.turn.root : entry.checkpoint.root;
}

/** Returns what to compare for an entry. */
function compared(entry: Entry, mode: Mode, history: History): { comparison?: Comparison; note?: string } {
  const { before, after } = states(entry);
  if (mode === "sinceBefore") {
    // By the name of a turn alone, its end would be the other side.
    const from = entry.kind === "turn" ? entry.turn.before : before;
    return from === undefined ? { note: "The state before is not saved." } : { comparison: { from } };
  }
  if (mode === "sinceAfter") {
    return after === undefined ? { note: "The state after is not saved." } : { comparison: { from: after } };
  }
  switch (entry.kind) {
    case "turn":
      return entry.turn.files.length === 0 ? { note: "This turn changed no files." } : { comparison: { from: entry.turn.name } };
    case "outside":
      return before === undefined || after === undefined
        ? { note: "The state before these changes is not saved, so they cannot be compared." }
        : { comparison: { from: before, to: after } };
    case "restore": {
      const to = entry.checkpoint.restoredId;
      return to === undefined ? { note: "This restore changed no files." } : { comparison: { from: entry.checkpoint.id, to } };
    }
    case "checkpoint": {
      const previous = previousOf(entry.checkpoint, history);
      return previous === undefined ? { comparison: { from: entry.checkpoint.id }, note: "This is the oldest checkpoint. It is compared with the files now." } : { comparison: { from: previous, to: entry.checkpoint.id } };
    }
  }
}

function previousOf({ root, createdAt }: Checkpoint, history: History): string | undefined {
  const older = history.checkpoints.filter((other) => other.root === root && other.createdAt < createdAt);
  return older[0]?.id;
}

/** Compares two entries, the older one first. */
function between(entry: Entry, other: Entry): { comparison?: Comparison; note: string } {
  const [older, newer] = entry.at <= other.at ? [entry, other] : [other, entry];
  const from = states(older).before;
  const to = states(newer).after;
  if (from === undefined || to === undefined) {
    return { note: "one of the two states is not saved." };
  }
  // A name of a turn alone means its end on the other side, which `to` replaces.
  return { comparison: { from, to }, note: `what changed from before ${title(older)} until after ${title(newer)}` };
}

function Head({ entry }: { entry: Entry }) {
  if (entry.kind === "turn") {
    const { name, agent, prompt, startedAt, endedAt, running, head } = entry.turn;
    const time = running ? `since ${clock(startedAt)}, running` : endedAt === undefined ? when(startedAt) : `${when(startedAt)}, ${duration(endedAt - startedAt)}`;
    return (
      <header class="detail-head">
        <h1>{visible(name)}</h1>
        <p class="dim">{visible([agent, time, head?.branch && `on ${head.branch}`].filter(Boolean).join(" · "))}</p>
        {prompt !== undefined && <blockquote>{visible(prompt)}</blockquote>}
      </header>
    );
  }
  if (entry.kind === "outside") {
    const { turns, from, to } = entry.turn.outside ?? {};
    const switched = from?.branch !== to?.branch && to?.branch !== undefined ? `The branch was switched from ${from?.branch ?? "a commit"} to ${to.branch}.` : undefined;
    return (
      <header class="detail-head">
        <h1>Changes between turns</h1>
        <p class="dim">
          before {visible(entry.turn.name)}, {when(entry.at)}
        </p>
        <p>
          {turns?.length ? `Changed by you, or by ${turns.join(", ")}, which ran at the same time.` : "Changed by you, or by a program that is not an agent."} {visible(switched ?? "")}
        </p>
      </header>
    );
  }
  const { id, durationMs, files, bytes, group, head } = entry.checkpoint;
  if (entry.kind === "restore") {
    const { restored } = entry;
    return (
      <header class="detail-head">
        <h1>{restoreTitle(entry)}</h1>
        <p class="dim">{when(entry.at)}</p>
        {restored && <p>{visible(`To ${checkpointTitle(restored)}, saved ${when(restored.createdAt)}.`)}</p>}
      </header>
    );
  }
  return (
    <header class="detail-head">
      <h1>{visible(title(entry))}</h1>
      <p class="dim">{visible([when(entry.at), head?.branch && `on ${head.branch}`, plural(files, "file"), size(bytes), `saved in ${durationMs < 1000 ? `${durationMs} ms` : duration(durationMs)}`, id.slice(0, 8), group && plural(group.length, "folder")].filter(Boolean).join(" · "))}</p>
    </header>
  );
}

function Actions(props: DetailProps & { mode: Mode; setMode: (mode: Mode) => void }) {
  const { entry, readOnly } = props;
  const [isNaming, setNaming] = useState(false);
  const isUndone = entry.kind === "restore" && entry.checkpoint.undoneBy !== undefined;
  const id = entry.kind === "turn" ? entry.turn.before : entry.kind === "outside" ? undefined : entry.checkpoint.id;
  const words = { turn: "Restore before this turn …", outside: "Restore before these changes …", checkpoint: "Restore …", restore: "Undo this restore …" };
  const canRestore = !readOnly && !isUndone && (entry.kind !== "outside" || entry.from !== undefined);
  const isTurn = entry.kind === "turn";
  const modes: [Mode, string][] = [["itself", entry.kind === "checkpoint" ? "Changes since the checkpoint before" : "These changes"], ["sinceAfter", isTurn ? "After this turn, compared with now" : "Compared with now"]];
  if (isTurn) {
    modes.push(["sinceBefore", "Before this turn, compared with now"]);
  }
  return (
    <>
      <div class="buttons">
        {canRestore && (
          <button class="primary" data-testid="restore" onClick={() => props.startRestore()}>
            {words[entry.kind]} <kbd>r</kbd>
          </button>
        )}
        <Select label="Compare" value={props.mode} options={modes} choose={(mode) => props.setMode(mode as Mode)} />
        {id !== undefined && !readOnly && (
          <button aria-expanded={isNaming} onClick={() => setNaming(!isNaming)}>
            Name …
          </button>
        )}
        <CopyButton text={entry.kind === "turn" ? entry.turn.name : (id ?? entry.id)} label={entry.kind === "turn" ? "Copy name" : "Copy id"} />
      </div>
      {isNaming && id !== undefined && <Name id={id} history={props.history} close={() => setNaming(false)} />}
    </>
  );
}

/** The form that names a checkpoint. */
function Name({ id, history, close }: { id: string; history: History; close: () => void }) {
  const { problem, run } = useAction();
  const [label, setLabel] = useState(history.checkpoints.find((checkpoint) => checkpoint.id === id)?.label ?? "");
  const save = async (): Promise<void> => {
    await transport.rpc("sightline/labelCheckpoint", { id, label: label.trim() });
    history.reload();
    close();
  };
  return (
    <form
      class="buttons"
      onSubmit={(event) => {
        event.preventDefault();
        run(save);
      }}
    >
      <label>
        Name <input autofocus value={label} onInput={({ currentTarget }) => setLabel(currentTarget.value)} />
      </label>
      <button type="submit">Save</button>
      <button type="button" class="quiet" onClick={close}>
        Cancel
      </button>
      <Alert text={problem} />
    </form>
  );
}

/** Paths that the checkpoints of an entry do not contain. */
function Skipped({ entry, history }: { entry: Entry; history: History }) {
  const ids = "turn" in entry ? [entry.turn.before, entry.turn.after] : [entry.checkpoint.id];
  const found = history.checkpoints.filter(({ id }) => ids.includes(id)).flatMap(({ skipped }) => skipped);
  const skipped = [...new Map(found.map((one) => [one.path, one])).values()];
  if (skipped.length === 0) {
    return null;
  }
  return (
    <details class="skipped">
      <summary>{plural(skipped.length, "path")} not saved</summary>
      <ul>
        {skipped.map(({ path, reason }) => (
          <li key={path}>
            {visible(path)} <span class="dim">{visible(reason)}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}
