/** The screen Timeline: what happened, newest first, and the details of one entry. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Counts, Dim, Empty, Note, Pending, Select, WindowedList } from "../parts";
import { type Query, useKeys } from "../state";
import { clock } from "../text";
import { Detail } from "./detail";
import { type Entry, rows, type Target, useHistory } from "./history";
import type { Done } from "./restore";

/** Height of a row, and of a heading, in pixels; the same as in the style sheet. */
const ROW = 52;
const DAY = 32;
/** Width below which the list or the details are shown, as in the style sheet. */
const NARROW = 900;
const nextFrame = requestAnimationFrame;

export interface TimelineProps {
  query: Query;
  go: (query: Query) => void;
  root: string | undefined;
  readOnly: boolean;
  done: (done: Done) => void;
  /** An undo that has conflicts, to show with its preview. */
  pending: Target | undefined;
}

export function Timeline({ query, go, root, readOnly, done, pending }: TimelineProps) {
  const { agent, text, id, compare } = query;
  const history = useHistory(root);
  const { all, hasMore, loading, error } = history;
  const list = useMemo(() => rows(all, agent, text), [all, agent, text]);
  const entries = list.filter((row): row is Entry => row.kind !== "day");
  const [target, setTarget] = useState<Target>();
  const pane = useRef<HTMLDivElement>(null);
  const filter = useRef<HTMLInputElement>(null);
  const selected = id ? all.find((entry) => entry.id === id) : entries[0];
  const other = all.find((entry) => entry.id === compare);
  const set = (changes: Query): void => go({ ...query, ...changes });
  useEffect(() => setTarget(pending), [pending]);

  const select = (entry: Entry, second: string | undefined): void => {
    setTarget(undefined);
    set({ id: entry.id, compare: second === entry.id ? undefined : second });
  };
  const move = (by: number): void => {
    const next = entries[Math.min(entries.length - 1, Math.max(0, entries.indexOf(selected as Entry) + by))];
    if (next) {
      select(next, compare);
      // The row is rendered after the list has scrolled to it.
      nextFrame(() => document.querySelector<HTMLElement>("[data-row][aria-current]")?.focus({ preventScroll: true }));
    }
  };
  /** Moves the focus from a row to the first file, once the files are loaded. */
  const focusFile = (): void => {
    const file = pane.current?.querySelector<HTMLElement>("[data-testid=file]");
    if (file) {
      file.focus();
    } else if (document.querySelector("[data-row]:focus")) {
      nextFrame(focusFile);
    }
  };
  const escape = (): void => {
    if (target) {
      setTarget(undefined);
    } else if (compare) {
      set({ compare: undefined });
    } else if (innerWidth < NARROW) {
      set({ id: undefined });
    }
  };
  useKeys((event) => {
    const { key } = event;
    const onRow = (event.target as HTMLElement).dataset["row"] !== undefined;
    const onRows: Record<string, () => void> = {
      ArrowDown: () => move(1),
      ArrowUp: () => move(-1),
      // After the focus of `move`.
      Enter: () => (set({ id: selected?.id }), nextFrame(focusFile)),
    };
    const actions: Record<string, () => void> = {
      j: () => move(1),
      k: () => move(-1),
      c: () => selected && set({ id: selected.id, compare: selected.id }),
      r: () => readOnly || setTarget(selected?.target),
      "/": () => filter.current?.focus(),
      Escape: escape,
    };
    const action = actions[key] ?? (onRow && onRows[key]);
    if (action) {
      event.preventDefault();
      action();
    }
  });

  const nothing =
    agent || text ? (
      <Empty title="Nothing matches.">
        <button onClick={() => go({})}>Show all</button>
      </Empty>
    ) : (
      <Empty title="Nothing has happened here yet." text="`sightline agents install` connects agents, whose turns are listed here. `sightline checkpoint create` saves the current state." />
    );
  return (
    <div class={`split ${id ? "chosen" : ""}`}>
      <section class="side">
        <div class="filters">
          <Select label="Agent, session or conversation" value={agent} options={[["", "All agents"], ...history.groups]} choose={(agent) => go({ text, agent })} />
          <input type="search" aria-label="Filter" placeholder="Filter" value={text ?? ""} ref={filter} onInput={({ currentTarget }) => go({ agent, text: currentTarget.value })} />
        </div>
        {loading || (error && !all.length) ? (
          <Pending answer={history} />
        ) : !list.length && !hasMore ? (
          nothing
        ) : (
          <WindowedList
            items={list}
            heightOf={({ kind }) => (kind === "day" ? DAY : ROW)}
            shown={selected?.id}
            label="Turns, newest first"
            onEnd={() => hasMore && history.more()}
            render={(row) =>
              row.kind === "day" ? (
                <h2 class="day">{row.label}</h2>
              ) : (
                <EntryRow entry={row} isSelected={row === selected} isCompared={row === other} select={(isSecond) => (isSecond && selected ? set({ id: selected.id, compare: row.id }) : select(row, undefined))} />
              )
            }
          />
        )}
      </section>
      <div class="main" ref={pane}>
        <button class="quiet back" onClick={() => set({ id: undefined, compare: undefined })}>
          ← Timeline
        </button>
        {compare && other === selected && <Note>Select the entry to compare with.</Note>}
        {selected ? (
          <Detail
            key={selected.id}
            entry={selected}
            other={other === selected ? undefined : other}
            history={history}
            readOnly={readOnly}
            target={target}
            endComparison={() => set({ compare: undefined })}
            openTurn={(name) => set({ id: name, compare: undefined })}
            restore={setTarget}
            done={(result) => {
              setTarget(undefined);
              done(result);
            }}
          />
        ) : (
          id &&
          !loading && (
            <Empty title={`Nothing here is named ${id}.`} text="It was deleted, or is not loaded: scroll to the end." />
          )
        )}
      </div>
    </div>
  );
}

interface EntryRowProps {
  entry: Entry;
  isSelected: boolean;
  isCompared: boolean;
  select: (isSecond: boolean) => void;
}

function EntryRow({ entry, isSelected, isCompared, select }: EntryRowProps) {
  const { id, kind, at, mark, meaning, name, says, changed, additions, deletions = 0 } = entry;
  return (
    <button
      {...(kind === "turn" && { "data-testid": "turn", "data-name": id })}
      data-row={id}
      class={`row ${kind} ${isCompared ? "compared" : ""}`}
      aria-current={isSelected ? "true" : undefined}
      tabIndex={isSelected ? 0 : -1}
      onClick={({ shiftKey }) => select(shiftKey)}
    >
      <span class="mark" title={meaning}>
        {mark}
        <span class="unseen"> {meaning} </span>
      </span>
      <span class="row-text">
        <span>
          <strong>{name}</strong>
          {additions !== undefined && <Counts additions={additions} deletions={deletions} />} <Dim>{changed}</Dim>
        </span>
        <span class="dim">
          <span>{clock(at)}</span>
          <span>{says}</span>
        </span>
      </span>
    </button>
  );
}
