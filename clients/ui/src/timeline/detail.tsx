/** The details of an entry of the timeline: its files, and what can be done with it. */

import { useState } from "preact/hooks";

import { Alert, CopyButton, Dim, Line, Note, Right, Select } from "../parts";
import { useAction } from "../state";
import { plural, sum } from "../text";
import { rpc } from "../transport";
import { Blame } from "./blame";
import { Files, type Parts } from "./diffview";
import { type Comparison, type Entry, type History, type Target, notSaved } from "./history";
import { type Done, RestorePanel } from "./restore";

export interface DetailProps {
  entry: Entry;
  /** The entry to compare with. */
  other: Entry | undefined;
  history: History;
  readOnly: boolean;
  target: Target | undefined;
  endComparison: () => void;
  openTurn: (name: string) => void;
  /** Starts the restore, of everything or of parts. */
  restore: (target: Target | undefined) => void;
  done: (done: Done) => void;
}

interface Compared {
  own?: Comparison | undefined;
  note?: string | undefined;
}

export function Detail(props: DetailProps) {
  const { entry, other, target, history, readOnly } = props;
  const { root, title, id, kind } = entry;
  const [mode, setMode] = useState("");
  const [isNaming, setNaming] = useState(false);
  const [parts, setParts] = useState<Parts>({});
  const [blamed, setBlamed] = useState<string>();
  const { own, note }: Compared = other ? between(entry, other) : mode ? since(entry, mode) : entry;
  // Without another side, a part can be restored from what there is now.
  const isPartial = !readOnly && own && !own.to;
  const hunks = isPartial ? Object.entries(parts).flatMap(([path, hunks]) => (hunks.length ? { path, hunks: [...hunks].sort((a, b) => a - b) } : [])) : [];
  const [checkpoint] = entry.checkpoints;
  const isTurn = kind === "turn";
  const modes: [string, string][] = [
    ["", "These changes"],
    ["after", isTurn ? "Compare its end with now" : "Compare with now"],
    ["before", "Compare its start with now"],
  ];
  return (
    <article>
      <h1>{entry.name}</h1>
      <Dim>{entry.facts}</Dim>
      {entry.text && <p>{entry.text}</p>}
      {entry.prompt && <blockquote>{entry.prompt}</blockquote>}
      {other ? (
        <div class="warning line">
          <span>
            Compared with <strong>{other.title}</strong>: {note}
          </span>
          <Right>
            <button onClick={props.endComparison}>
              End comparison <kbd>Esc</kbd>
            </button>
          </Right>
        </div>
      ) : (
        <Line>
          {entry.target && !readOnly && (
            <button class="primary" data-testid="restore" onClick={() => props.restore(entry.target)}>
              {entry.action} <kbd>r</kbd>
            </button>
          )}
          <Select label="Compare" value={mode} options={modes.slice(0, isTurn ? 3 : 2)} choose={(mode) => (setParts({}), setMode(mode))} />
          {checkpoint && !readOnly && (
            <button aria-expanded={isNaming} onClick={() => setNaming(!isNaming)}>
              Name …
            </button>
          )}
          <CopyButton text={isTurn ? id : (checkpoint ?? id)} label="Copy id" />
        </Line>
      )}
      {isNaming && checkpoint && <Name id={checkpoint} history={history} close={() => setNaming(false)} />}
      {target && <RestorePanel target={target} close={() => props.restore(undefined)} done={props.done} />}
      {!other && note && <Note>{note}</Note>}
      {own && blamed && <Blame path={blamed} root={root} close={() => setBlamed(undefined)} openTurn={props.openTurn} />}
      {own && !blamed && (
        <>
          {hunks.length > 0 && (
            <button class="primary" onClick={() => props.restore({ id: own.from, root, title, isTurn, hunks })}>
              Revert {plural(sum(hunks, (file) => file.hunks.length), "part")} …
            </button>
          )}
          <Files comparison={{ ...own, root }} moves={!own.to && own.from !== id} blame={setBlamed} parts={parts} choose={isPartial ? setParts : undefined} />
        </>
      )}
      <Skipped entry={entry} history={history} />
    </article>
  );
}

/** Compares a side of the entry with the workspace. */
function since(entry: Entry, side: string): Compared {
  const from = side === "before" ? (entry.start ?? entry.before) : entry.after;
  return from ? { own: { from } } : { note: notSaved(side) };
}

/** Compares two entries, the older one first. */
function between(entry: Entry, other: Entry): Compared {
  const [older, newer] = entry.at <= other.at ? [entry, other] : [other, entry];
  const { before: from } = older;
  const { after: to } = newer;
  return from && to ? { own: { from, to }, note: `from before ${older.title} until after ${newer.title}` } : { note: "one of the two states is not saved." };
}

/** The form that names a checkpoint. */
function Name({ id, history, close }: { id: string; history: History; close: () => void }) {
  const { problem, run } = useAction();
  const [label, setLabel] = useState(history.checkpoints.find((checkpoint) => checkpoint.id === id)?.label ?? "");
  const save = async (): Promise<void> => {
    await rpc("labelCheckpoint", { id, label: label.trim() });
    history.reload();
    close();
  };
  return (
    <form class="line" onSubmit={(event) => (event.preventDefault(), run(save))}>
      <label>
        Name <input autofocus value={label} onInput={({ currentTarget }) => setLabel(currentTarget.value)} />
      </label>
      <button>Save</button>
      <Alert error={problem} />
    </form>
  );
}

/** Paths that the checkpoints of an entry do not contain. */
function Skipped({ entry, history }: { entry: Entry; history: History }) {
  const skipped = new Map(history.checkpoints.filter(({ id }) => entry.checkpoints.includes(id)).flatMap(({ skipped }) => skipped.map(({ path, reason }) => [path, reason])));
  return skipped.size ? (
    <details>
      <summary>{plural(skipped.size, "path")} not saved</summary>
      <ul class="table">
        {[...skipped].map(([path, reason]) => (
          <li>
            {path} <Dim>{reason}</Dim>
          </li>
        ))}
      </ul>
    </details>
  ) : null;
}
