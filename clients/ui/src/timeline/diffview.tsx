/** The changed files of a comparison, with the diff of each. */

import { useEffect, useMemo, useState } from "preact/hooks";

import type { DiffCheckpointsParams, FileDifference } from "../../../types/protocol";
import { type Block, cut, parse } from "./diff";
import { Counts, Path, Pending } from "../parts";
import { useRequest } from "../state";
import { plural, visible, visibleText } from "../text";

/** Lines of a diff that are shown at once. */
const SHOWN_LINES = 400;

/** Two states to compare. Without `to`, the workspace now or the end of a turn. */
export interface Comparison {
  from: string;
  to?: string;
  root?: string;
}

const STATUS: Record<FileDifference["status"], { letter: string; name: string }> = {
  added: { letter: "A", name: "added" },
  modified: { letter: "M", name: "modified" },
  deleted: { letter: "D", name: "deleted" },
  renamed: { letter: "R", name: "renamed" },
  typeChanged: { letter: "T", name: "type changed" },
};

interface Actions {
  /** Opens a file in the editor. */
  open: (path: string) => void;
  /** Shows who wrote the lines of a file. */
  blame: (path: string) => void;
}

/** Parts of files, by path, as the numbers of their hunks. */
export type Parts = Readonly<Record<string, readonly number[]>>;

/** Which parts are ticked. Absent if they cannot be restored one by one. */
export interface Choice {
  parts: Parts;
  choose: (parts: Parts) => void;
}

/** The files of a comparison. `moves` says that one side is the workspace. */
export function Files({ comparison, actions, choice, moves }: { comparison: Comparison; actions: Actions; choice?: Choice; moves: boolean }) {
  // What the workspace is compared with changes with it.
  const answer = useRequest("sightline/diffCheckpoints", { ...comparison }, moves ? ["didChangeContext", "didCreateCheckpoint"] : []);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const key = JSON.stringify(comparison);
  useEffect(() => setOpened(new Set()), [key]);

  if (!answer.data) {
    return <Pending answer={answer} what="changes" />;
  }
  const { files } = answer.data;
  if (files.length === 0) {
    return <p class="note">No files differ.</p>;
  }
  const additions = files.reduce((sum, file) => sum + file.additions, 0);
  const deletions = files.reduce((sum, file) => sum + file.deletions, 0);
  const isAllOpen = files.every(({ path }) => opened.has(path));
  const toggle = (path: string): void => {
    const next = new Set(opened);
    if (!next.delete(path)) {
      next.add(path);
    }
    setOpened(next);
  };
  return (
    <section aria-label="Changed files">
      <div class="files-head">
        <strong>{plural(files.length, "file")}</strong> <Counts additions={additions} deletions={deletions} />
        <button class="quiet right" onClick={() => setOpened(new Set(isAllOpen ? [] : files.map(({ path }) => path)))}>
          {isAllOpen ? "Close all" : "Open all"}
        </button>
      </div>
      <ul class="files">
        {files.slice(0, 1000).map((file) => (
          <li key={file.path}>
            <File file={file} comparison={comparison} isOpen={opened.has(file.path)} toggle={() => toggle(file.path)} actions={actions} choice={choice} />
          </li>
        ))}
      </ul>
      {files.length > 1000 && <p class="note">{plural(files.length - 1000, "further file")}. `sightline checkpoint diff` lists all.</p>}
    </section>
  );
}

interface FileProps {
  file: FileDifference;
  comparison: Comparison;
  isOpen: boolean;
  toggle: () => void;
  actions: Actions;
  choice?: Choice;
}

function File({ file, comparison, isOpen, toggle, actions, choice }: FileProps) {
  const { letter, name } = STATUS[file.status];
  return (
    <>
      <button class="file" data-testid="file" aria-expanded={isOpen} onClick={toggle}>
        <span class={`status status-${file.status}`} title={name}>
          {letter}
          <span class="hidden-text"> {name} </span>
        </span>
        <Path path={file.path} />
        <span class="right">{file.binary || file.omitted !== undefined ? <span class="dim">{file.binary ? "binary" : "not compared"}</span> : <Counts {...file} />}</span>
      </button>
      {isOpen && (
        <div class="diff-box">
          <div class="diff-actions">
            <Facts file={file} />
            <span class="right">
              {file.status !== "deleted" && (
                <>
                  {!file.binary && (
                    <button class="quiet" onClick={() => actions.blame(file.path)}>
                      Who wrote it
                    </button>
                  )}
                  <button class="quiet" onClick={() => actions.open(file.path)}>
                    Open in editor
                  </button>
                </>
              )}
            </span>
          </div>
          <Diff file={file} comparison={comparison} choice={file.status === "modified" ? choice : undefined} />
        </div>
      )}
    </>
  );
}

/** What changed about a file besides its lines. */
function Facts({ file }: { file: FileDifference }) {
  const facts: string[] = [];
  if (file.oldPath !== undefined && file.oldPath !== file.path) {
    facts.push(`renamed from ${visible(file.oldPath)}`);
  }
  if (file.oldMode !== undefined && file.newMode !== undefined && file.oldMode !== file.newMode) {
    facts.push(describeMode(file.oldMode, file.newMode));
  } else if (file.newMode === "120000" || file.oldMode === "120000") {
    facts.push("symbolic link");
  }
  return <span class="dim">{facts.join(" · ")}</span>;
}

function describeMode(before: string, after: string): string {
  const kinds: Record<string, string> = { "100644": "a file", "100755": "an executable file", "120000": "a symbolic link", "160000": "a submodule" };
  return `was ${kinds[before] ?? `mode ${before}`}, is ${kinds[after] ?? `mode ${after}`}`;
}

function Diff({ file, comparison, choice }: { file: FileDifference; comparison: Comparison; choice?: Choice }) {
  const isShown = !file.binary && file.omitted === undefined;
  const paths = file.oldPath === undefined ? [file.path] : [file.oldPath, file.path];
  const params: DiffCheckpointsParams | undefined = isShown ? { ...comparison, paths, patch: true } : undefined;
  const answer = useRequest("sightline/diffCheckpoints", params);
  const { data } = answer;
  const hunks = useMemo(() => parse(data?.text ?? ""), [data?.text]);
  const [limit, setLimit] = useState(SHOWN_LINES);
  const ticked = choice?.parts[file.path] ?? [];
  const lines = hunks.reduce((sum, hunk) => sum + hunk.lines, 0);

  if (!data && isShown) {
    return <Pending answer={answer} what="the diff" />;
  }
  let note: string | undefined;
  const omitted = file.omitted ?? data?.files.find(({ path }) => path === file.path)?.omitted;
  if (omitted !== undefined) {
    note = `Contents are not shown: ${omitted}.`;
  } else if (file.binary) {
    note = "This is a binary file. Its contents are saved and restored, but not compared.";
  } else if (data && lines === 0) {
    note = file.status === "renamed" ? "Only the name changed." : "No lines changed.";
  }
  return (
    <div class="diff" data-testid="diff" tabIndex={0} role="region" aria-label={`Diff of ${visible(file.path)}`}>
      {note !== undefined && <p class="note">{visible(note)}</p>}
      {cut(hunks, limit).map((hunk, index) => (
        <div class="hunk" key={index}>
          <label class="hunk-head">
            {choice && <input type="checkbox" aria-label={`Part ${index + 1}`} checked={ticked.includes(index + 1)} onChange={() => choice.choose({ ...choice.parts, [file.path]: toggled(ticked, index + 1) })} />} {visible(hunk.header)}
          </label>
          {hunk.blocks.map((block, at) => (
            <Lines block={block} key={at} />
          ))}
        </div>
      ))}
      {lines > limit && (
        <button class="more" onClick={() => setLimit(Infinity)}>
          Show {plural(lines - limit, "more line")}
        </button>
      )}
    </div>
  );
}

function toggled(numbers: readonly number[], number: number): number[] {
  return numbers.includes(number) ? numbers.filter((other) => other !== number) : [...numbers, number].sort((a, b) => a - b);
}

const SIGNS = { same: " ", added: "+", removed: "−", note: "\\" };

/** Lines of one kind, as one element per column. */
function Lines({ block }: { block: Block }) {
  const { kind, lines } = block;
  const numbers = (first: number, isThere: boolean): string => lines.map((_, index) => (isThere ? first + index : "")).join("\n");
  const isNote = kind === "note";
  return (
    <div class={`lines lines-${kind}`}>
      <pre class="number" aria-hidden="true">
        {numbers(block.before, kind !== "added" && !isNote)}
      </pre>
      <pre class="number" aria-hidden="true">
        {numbers(block.after, kind !== "removed" && !isNote)}
      </pre>
      <pre class="sign">{lines.map(() => SIGNS[kind]).join("\n")}</pre>
      <pre class="code">{visibleText(lines.join("\n"))}</pre>
    </div>
  );
}
