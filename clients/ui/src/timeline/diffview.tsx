/** The changed files of a comparison, with the diff of each. */

import { useEffect, useMemo, useState } from "preact/hooks";

import type { FileDifference } from "../../../types/protocol";
import { Code, Counts, Dim, Do, Line, Note, Path, Pending, Quiet, Right } from "../parts";
import { useRequest } from "../state";
import { facts, plural, sum, visible } from "../text";
import { open } from "../transport";
import { type Block, cut, parse } from "./diff";
import type { Comparison } from "./history";

/** Lines of a diff that are shown at once. */
const SHOWN_LINES = 400;
/** Number of files that are listed. */
const SHOWN_FILES = 1000;

/** Parts of files, by path, as the numbers of their hunks. */
export type Parts = Readonly<Record<string, readonly number[]>>;

interface FilesProps {
  comparison: Comparison & { root: string };
  /** True if one side is the workspace. */
  moves: boolean;
  blame: (path: string) => void;
  /** Which parts are ticked. */
  parts: Parts;
  /** Absent if parts cannot be restored one by one. */
  choose: ((parts: Parts) => void) | undefined;
}

/** The files of a comparison. */
export function Files(props: FilesProps) {
  const { comparison, moves } = props;
  // What the workspace is compared with changes with it.
  const answer = useRequest("diffCheckpoints", comparison, ["didChangeContext", "didCreateCheckpoint"].slice(moves ? 0 : 2) as "didChangeContext"[]);
  const [opened, setOpened] = useState<readonly string[]>([]);
  useEffect(() => setOpened([]), [JSON.stringify(comparison)]);
  const files = answer.data?.files;
  if (!files?.length) {
    return files ? <Note>No files differ.</Note> : <Pending answer={answer} />;
  }
  const isAllOpen = opened.length === files.length;
  return (
    <section>
      <Line>
        <strong>{plural(files.length, "file")}</strong> <Counts additions={sum(files, (file) => file.additions)} deletions={sum(files, (file) => file.deletions)} />
        <Right>
          <Quiet run={() => setOpened(isAllOpen ? [] : files.map(({ path }) => path))}>
            {isAllOpen ? "Close all" : "Open all"}
          </Quiet>
        </Right>
      </Line>
      <ul class="files">
        {files.slice(0, SHOWN_FILES).map((file) => (
          <li key={file.path}>
            <File {...props} file={file} isOpen={opened.includes(file.path)} toggle={() => setOpened(toggled(opened, file.path))} />
          </li>
        ))}
      </ul>
      {files.length > SHOWN_FILES && (
        <Note>
          <Code text={`${plural(files.length - SHOWN_FILES, "further file")}. \`sightline checkpoint diff\` lists all.`} />
        </Note>
      )}
    </section>
  );
}

/** Adds a value, or removes it. */
export function toggled<T>(all: readonly T[], value: T): T[] {
  return all.includes(value) ? all.filter((other) => other !== value) : [...all, value];
}

function File(props: FilesProps & { file: FileDifference; isOpen: boolean; toggle: () => void }) {
  const { file, isOpen, blame } = props;
  const { path, status, binary, omitted, oldPath, oldMode, newMode } = file;
  const name = status.replace("C", " c");
  return (
    <>
      <button class="file" data-testid="file" aria-expanded={isOpen} onClick={props.toggle}>
        <code class={status} title={name}>
          {name[0]?.toUpperCase()}
          <span class="unseen"> {name} </span>
        </code>
        <Path path={path} />
        <Right>{binary ? <Dim>binary</Dim> : omitted ? <Dim>not compared</Dim> : <Counts {...file} />}</Right>
      </button>
      {isOpen && (
        <div class="opened">
          <Line>
            <Dim>
              {facts(
                oldPath && oldPath !== path && `renamed from ${oldPath}`,
                oldMode && newMode && oldMode !== newMode ? `was ${modeName(oldMode)}, is ${modeName(newMode)}` : (newMode ?? oldMode) === "120000" && "symbolic link",
              )}
            </Dim>
            {status !== "deleted" && (
              <Right>
                {!binary && (
                  <Quiet run={() => blame(path)}>
                    Authors
                  </Quiet>
                )}
                <Do class="quiet" label="Open in editor" run={() => open(path)} />
              </Right>
            )}
          </Line>
          <Diff {...props} />
        </div>
      )}
    </>
  );
}

function modeName(mode: string): string {
  return { "100644": "a file", "100755": "an executable file", "120000": "a symbolic link", "160000": "a submodule" }[mode] ?? `mode ${mode}`;
}

function Diff({ file, comparison, parts, choose }: FilesProps & { file: FileDifference }) {
  const { path, oldPath, status, binary } = file;
  const isShown = !binary && !file.omitted;
  const answer = useRequest("diffCheckpoints", isShown ? { ...comparison, paths: oldPath ? [oldPath, path] : [path], patch: true } : undefined);
  const { data } = answer;
  const hunks = useMemo(() => parse(data?.text ?? ""), [data]);
  const [limit, setLimit] = useState(SHOWN_LINES);
  if (!data && isShown) {
    return <Pending answer={answer} />;
  }
  const [shown, lines] = cut(hunks, limit);
  const omitted = file.omitted ?? data?.files.find((one) => one.path === path)?.omitted;
  const ticked = parts[path] ?? [];
  return (
    <div class="diff" data-testid="diff" tabIndex={0} role="region" aria-label={`Diff of ${visible(path)}`}>
      {!lines && (
        <Note>
          {omitted ? `Contents are not shown: ${omitted}.` : binary ? "This binary file is not compared." : status === "renamed" ? "Only the name changed." : "No lines changed."}
        </Note>
      )}
      {shown.map(({ header, blocks }, index) => (
        <div class="hunk" key={index}>
          <label>
            {choose && status === "modified" && <input type="checkbox" aria-label={`Part ${index + 1}`} checked={ticked.includes(index + 1)} onChange={() => choose({ ...parts, [path]: toggled(ticked, index + 1) })} />} {header}
          </label>
          {blocks.map(Lines)}
        </div>
      ))}
      {lines > limit && <button onClick={() => setLimit(Infinity)}>Show {plural(lines - limit, "more line")}</button>}
    </div>
  );
}

const SIGNS = { same: " ", added: "+", removed: "−", note: "\\" };

/** Lines of one kind, as one element per column. */
function Lines({ kind, lines, before, after }: Block) {
  const column = (text: (index: number) => number | string, name = "number") => (
    <pre class={name} aria-hidden>
      {lines.map((_, index) => text(index)).join("\n")}
    </pre>
  );
  return (
    <div class={`lines ${kind}`}>
      {column((index) => (/same|removed/.test(kind) ? before + index : ""))}
      {column((index) => (/same|added/.test(kind) ? after + index : ""))}
      {column(() => SIGNS[kind], "sign")}
      <pre>{lines.join("\n")}</pre>
    </div>
  );
}
