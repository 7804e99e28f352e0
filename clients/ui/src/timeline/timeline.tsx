/** The screen Timeline: what happened, newest first, and the details of one entry. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Detail } from "./detail";
import { type Entry, type History, type Row, checkpointTitle, restoreTitle, rows, title, useHistory } from "./history";
import { Counts, Empty, Failure, Loading, Select, WindowedList } from "../parts";
import type { Done, Target } from "./restore";
import { type Route, useIsNarrow } from "../state";
import { clock, plural, visible } from "../text";

/** Height of a row, and of a heading, in pixels; the same as in the style sheet. */
const ROW = 52;
const DAY = 32;

export interface TimelineProps {
  route: Route;
  go: (query: Record<string, string | undefined>) => void;
  root: string | undefined;
  readOnly: boolean;
  onDone: (done: Done) => void;
  /** An undo that has conflicts, to show with its preview. */
  pending: Target | undefined;
  closePending: () => void;
}

export function Timeline(props: TimelineProps) {
  const { route, go, root } = props;
  const { agent, text, id, compare } = route.query;
  const history = useHistory(root);
  const list = useMemo(() => rows(history.all, { agent, text }), [history.all, agent, text]);
  const entries = list.filter((row): row is Entry => row.kind !== "day");
  const isNarrow = useIsNarrow(900);
  const [target, setTarget] = useState<Target>();
  const pane = useRef<HTMLDivElement>(null);
  const filter = useRef<HTMLInputElement>(null);

  const byId = (wanted: string | undefined): Entry | undefined => history.all.find((entry) => entry.id === wanted);
  // In a narrow window, nothing is selected until the user does.
  const selected = byId(id) ?? (isNarrow || id !== undefined ? undefined : entries[0]);
  const other = byId(compare);
  const set = (query: Record<string, string | undefined>): void => go({ agent, text, id, compare, ...query });
  const select = (entry: Entry, isSecond = false): void => {
    setTarget(undefined);
    props.closePending();
    if (isSecond && selected && selected.id !== entry.id) {
      set({ id: selected.id, compare: entry.id });
    } else {
      set({ id: entry.id, compare: undefined });
    }
  };
  const move = (by: number): void => {
    const index = entries.findIndex((entry) => entry.id === selected?.id);
    const next = entries[Math.max(0, Math.min(entries.length - 1, index + by))];
    if (next) {
      select(next);
      // The row is rendered after the list has scrolled to it.
      requestAnimationFrame(() => document.querySelector<HTMLElement>('[data-row][aria-current="true"]')?.focus({ preventScroll: true }));
    }
  };
  const restore = (entry: Entry | undefined): void => {
    if (entry && !props.readOnly) {
      setTarget(restoreTarget(entry));
    }
  };
  useEffect(() => {
    if (props.pending) {
      setTarget(props.pending);
    }
  }, [props.pending]);

  const keys = useRef<(event: KeyboardEvent) => void>(() => undefined);
  keys.current = (event) => {
    const actions: Record<string, () => void> = {
      j: () => move(1),
      k: () => move(-1),
      r: () => restore(selected),
      "/": () => filter.current?.focus(),
      Enter: () => pane.current?.querySelector<HTMLElement>("[data-testid=file]")?.focus(),
      Escape: () => (target ? closeTarget() : compare ? set({ compare: undefined }) : isNarrow ? set({ id: undefined }) : undefined),
    };
    const onRow = event.target instanceof HTMLElement && event.target.dataset["row"] !== undefined;
    if (event.key === "Enter" && !onRow) {
      return;
    }
    const action = actions[event.key] ?? (onRow && { ArrowDown: () => move(1), ArrowUp: () => move(-1) }[event.key]);
    if (action) {
      event.preventDefault();
      action();
    }
  };
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof HTMLInputElement && event.target.type !== "checkbox" && event.target.type !== "radio";
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
      if (isPlain && !event.defaultPrevented && (!isTyping || event.key === "Escape") && !document.querySelector("dialog[open]")) {
        keys.current(event);
      }
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);
  const closeTarget = (): void => {
    setTarget(undefined);
    props.closePending();
  };

  const isDetailShown = !isNarrow || selected !== undefined;
  return (
    <div class={`split ${isNarrow && selected ? "split-detail" : ""}`}>
      {(!isNarrow || !selected) && (
        <section class="side" aria-label="Timeline">
          <Filters history={history} agent={agent} text={text} input={filter} set={(query) => set({ ...query, id: undefined, compare: undefined })} />
          <List history={history} list={list} selected={selected} compared={other} select={select} isFiltered={!!agent || !!text} clear={() => go({})} />
        </section>
      )}
      {isDetailShown && (
        <div class="main" ref={pane}>
          {isNarrow && (
            <button class="quiet back" onClick={() => set({ id: undefined, compare: undefined })}>
              ← Timeline
            </button>
          )}
          {!selected && id && !history.loading && (
            <Empty title={`Nothing here is named ${visible(id)}.`}>
              <p>It may have been deleted, or is older than what is loaded. Scroll the list to its end to load more.</p>
            </Empty>
          )}
          {selected && (
            <Detail
              key={selected.id}
              entry={selected}
              other={other}
              closeOther={() => set({ compare: undefined })}
              history={history}
              readOnly={props.readOnly}
              target={target}
              openTurn={(name) => set({ id: name, compare: undefined })}
              startRestore={(part) => (part ? setTarget(part) : restore(selected))}
              closeRestore={closeTarget}
              onDone={(done) => {
                closeTarget();
                props.onDone(done);
              }}
            />
          )}
        </div>
      )}
    </div>
  );
}

function restoreTarget(entry: Entry): Target | undefined {
  switch (entry.kind) {
    case "turn":
      return { id: entry.turn.name, root: entry.turn.root, title: entry.turn.name, isTurn: true };
    case "outside":
      return entry.from === undefined ? undefined : { id: entry.from, root: entry.turn.root, title: `the state before the ${title(entry)}` };
    case "checkpoint":
      return { id: entry.checkpoint.id, root: entry.checkpoint.root, title: title(entry) };
    case "restore":
      return { id: entry.checkpoint.id, root: entry.checkpoint.root, title: title(entry), undo: true };
  }
}

interface FiltersProps {
  history: History;
  agent: string | undefined;
  text: string | undefined;
  input: { current: HTMLInputElement | null };
  set: (query: { agent?: string; text?: string | undefined }) => void;
}

function Filters({ history, agent, text, input, set }: FiltersProps) {
  return (
    <div class="filters">
      <Select label="Agent or session" value={agent} options={[["", "All agents"], ...history.agents, ...history.sessions]} choose={(name) => set({ agent: name })} />
      <input
        type="search"
        aria-label="Filter by name, prompt, label or path"
        placeholder="Filter: prompt, label or path"
        value={text ?? ""}
        ref={input}
        onInput={({ currentTarget }) => set({ text: currentTarget.value })}
      />
    </div>
  );
}

interface ListProps {
  history: History;
  list: Row[];
  selected: Entry | undefined;
  compared: Entry | undefined;
  select: (entry: Entry, isSecond: boolean) => void;
  isFiltered: boolean;
  clear: () => void;
}

function List({ history, list, selected, compared, select, isFiltered, clear }: ListProps) {
  if (history.loading) {
    return <Loading what="the timeline" />;
  }
  if (history.error && history.all.length === 0) {
    return <Failure error={history.error} retry={history.reload} />;
  }
  if (list.length === 0 && isFiltered && !history.hasMore) {
    return (
      <Empty title="Nothing matches the filter.">
        <button onClick={clear}>
          Show all
        </button>
      </Empty>
    );
  }
  if (list.length === 0 && !history.hasMore) {
    return (
      <Empty title="Nothing has happened here yet.">
        <p>
          Turns of agents appear here once an agent is connected: <code>sightline agents install</code>
        </p>
        <p>
          Or save the current state: <code>sightline checkpoint create</code>
        </p>
      </Empty>
    );
  }
  return (
    <WindowedList
      items={list}
      keyOf={(row) => row.id}
      heightOf={(row) => (row.kind === "day" ? DAY : ROW)}
      shown={selected?.id}
      label="Turns, changes and restores, newest first"
      onEnd={() => history.hasMore && history.more()}
      render={(row) =>
        row.kind === "day" ? (
          <h2 class="day">{row.label}</h2>
        ) : (
          <EntryRow row={row} isSelected={row.id === selected?.id} isCompared={row.id === compared?.id} select={(isSecond) => select(row, isSecond)} />
        )
      }
    />
  );
}

/** A mark for the kind of an entry, with its meaning. */
const MARKS: Record<Entry["kind"] | "group", { mark: string; meaning: string }> = {
  turn: { mark: "●", meaning: "turn" },
  outside: { mark: "◌", meaning: "changes between turns" },
  checkpoint: { mark: "■", meaning: "checkpoint" },
  restore: { mark: "↺", meaning: "restore" },
  group: { mark: "▣", meaning: "checkpoint of several folders" },
};

interface EntryRowProps {
  row: Entry;
  isSelected: boolean;
  isCompared: boolean;
  select: (isSecond: boolean) => void;
}

function EntryRow({ row, isSelected, isCompared, select }: EntryRowProps) {
  const { mark, meaning } = MARKS["checkpoint" in row && row.checkpoint.group ? "group" : row.kind];
  const { head, detail, counts } = describe(row);
  const testId = row.kind === "turn" ? { "data-testid": "turn", "data-name": row.turn.name } : {};
  return (
    <button
      {...testId}
      data-row={row.id}
      class={`row row-${row.kind} ${isCompared ? "row-compared" : ""}`}
      aria-current={isSelected ? "true" : undefined}
      tabIndex={isSelected ? 0 : -1}
      onClick={({ shiftKey }) => select(shiftKey)}
    >
      <span class="mark" title={meaning}>
        {mark}
        <span class="hidden-text"> {meaning} </span>
      </span>
      <span class="row-text">
        <span class="row-head">
          <span class="row-name">{visible(head)}</span>
          {counts}
        </span>
        <span class="row-detail">
          <time dateTime={new Date(row.at).toISOString()}>{clock(row.at)}</time>
          <span class="row-words">{visible(detail)}</span>
        </span>
      </span>
    </button>
  );
}

function describe(row: Entry): { head: string; detail: string; counts?: preact.ComponentChild } {
  switch (row.kind) {
    case "turn": {
      const { name, prompt, files, moreFiles = 0, running } = row.turn;
      const count = files.length + moreFiles;
      const additions = files.reduce((sum, file) => sum + file.additions, 0);
      const deletions = files.reduce((sum, file) => sum + file.deletions, 0);
      const changed = count === 0 ? (running ? "running" : "no changes") : `${plural(count, "file")}${running ? ", running" : ""}`;
      return {
        head: name,
        detail: prompt ?? "no prompt stored",
        counts: (
          <span class="row-counts">
            {count > 0 && <Counts additions={additions} deletions={deletions} />} <span class="dim">{changed}</span>
          </span>
        ),
      };
    }
    case "outside": {
      const { files, moreFiles = 0, from, to, turns } = row.turn.outside ?? { files: [] };
      const count = files.length + moreFiles;
      const switched = to?.branch !== undefined && from?.branch !== to.branch ? `switched to ${to.branch}` : undefined;
      return {
        head: row.isRestored ? "You, and the restore" : turns?.length ? `You, or ${turns.join(", ")}` : "You",
        detail: [switched, count > 0 && files.map(({ path }) => path.split("/").pop()).slice(0, 3).join(", ")].filter(Boolean).join(": ") || "another commit checked out",
        counts: <span class="row-counts dim">{count > 0 ? plural(count, "file") : ""}</span>,
      };
    }
    case "checkpoint": {
      const { label, added, modified, deleted, kind } = row.checkpoint;
      const changed = added + modified + deleted;
      return {
        head: title(row),
        detail: kind === "imported" ? "imported" : kind === "manual" ? (label === undefined ? "saved by you" : "saved by you, named") : "saved automatically",
        counts: <span class="row-counts dim">{changed === 0 ? "no changes" : plural(changed, "file")}</span>,
      };
    }
    case "restore": {
      const { restoredId } = row.checkpoint;
      return {
        head: restoreTitle(row),
        detail: row.restored ? checkpointTitle(row.restored) : (restoredId?.slice(0, 8) ?? "a conversation"),
      };
    }
  }
}
