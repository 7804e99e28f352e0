/** The entries of the timeline: turns of agents, what changed between them, checkpoints and restores. */

import { useMemo, useState } from "preact/hooks";

import type { Checkpoint, FileHunks, ListedTurn } from "../../../types/protocol";
import { useAction, useRequest } from "../state";
import { clock, day, duration, facts, joined, plural, size, sum, when } from "../text";
import { type RequestError, rpc } from "../transport";

/** Two states to compare. Without `to`, the workspace now or the end of a turn. */
export interface Comparison {
  from: string;
  to?: string;
}

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

/** Something that happened, with all that the timeline says about it. */
export interface Entry {
  kind: "turn" | "outside" | "checkpoint" | "restore";
  /** What it is in the address. */
  id: string;
  at: number;
  root: string;
  /** A sign for its kind, and its meaning. */
  mark: string;
  meaning: string;
  /** What it is called in a sentence, and alone. */
  title: string;
  name: string;
  /** The second line in the list. */
  says: string;
  /** How much changed, as text. */
  changed?: string;
  additions?: number;
  deletions?: number;
  /** The lines below the heading, and the prompt. */
  facts: string;
  text?: string;
  prompt?: string;
  /** The agent, the session and the conversation that it belongs to. */
  groups: string[];
  /** Where the filter looks, in lower case. */
  search: string;
  /** The states that it begins and ends with, and the first one as a checkpoint if it has another name. */
  before?: string | undefined;
  after?: string | undefined;
  start?: string | undefined;
  /** What it changed, or why that cannot be shown. */
  own?: Comparison | undefined;
  note?: string | undefined;
  /** What its button restores, and what the button says. */
  target?: Target | undefined;
  action?: string;
  /** Its checkpoints. The first one takes a name. */
  checkpoints: string[];
}

export type Row = Entry | { kind: "day"; id: string; label: string };

/** Prefix of the group of a conversation. */
export const TASK = "task:";

/** Returns what is there of a list. */
function present<T>(items: (T | undefined)[]): T[] {
  return items.filter((item) => item !== undefined);
}

/** Returns the name of the session of a turn: `claude-2` of `claude-2.3`. */
function sessionName({ name }: { name: string }): string {
  return name.slice(0, name.lastIndexOf("."));
}

/** Says that the state before or after something is missing. */
export function notSaved(side: string): string {
  return `The state ${side} is not saved.`;
}

function searched(...texts: (string | undefined)[]): string {
  return texts.join("\n").toLowerCase();
}

function turnEntry(turn: ListedTurn, checkpoints: readonly Checkpoint[]): Entry {
  const { name, agent, prompt, files, moreFiles = 0, running, startedAt, endedAt, head, root, before, after } = turn;
  const count = files.length + moreFiles;
  const time = running ? `since ${clock(startedAt)}` : joined(", ", when(startedAt), endedAt && duration(endedAt - startedAt));
  const first = checkpoints.find(({ id }) => id === before);
  const label = first?.label;
  const isUnknown = before && !after && !running;
  const none = isUnknown ? notSaved("after") : `This turn has changed no files${running ? " yet" : ""}.`;
  return {
    kind: "turn",
    id: name,
    // What was saved before its first edit is older.
    at: Math.max(startedAt, first?.createdAt ?? 0),
    root,
    mark: "●",
    meaning: "turn",
    title: name,
    name: joined(": ", name, label),
    says: prompt ?? "no prompt stored",
    changed: joined(", ", count ? plural(count, "file") : !running && (isUnknown ? "its end was not saved" : "no changes"), running && "running"),
    ...(count && { additions: sum(files, (file) => file.additions), deletions: sum(files, (file) => file.deletions) }),
    facts: facts(agent, time, head?.branch && `on ${head.branch}`),
    prompt,
    groups: [agent, sessionName(turn)],
    search: searched(name, label, prompt, ...files.map(({ path }) => path)),
    before: name,
    after: `${name}+`,
    start: before,
    ...(count ? { own: { from: name } } : { note: none }),
    target: { id: name, root, title: name, isTurn: true },
    action: "Restore before this turn …",
    checkpoints: present([before, after]),
  };
}

/** What changed outside turns, before the first edit of `turn`. `older` is the turn before it. */
function outsideEntry(turn: ListedTurn, older: ListedTurn | undefined, undoPoints: readonly Checkpoint[]): Entry | undefined {
  const { name, root, startedAt: at, outside, before: after } = turn;
  if (!outside || !(outside.files.length || outside.from || outside.to)) {
    return undefined;
  }
  const { files, moreFiles = 0, from, to, turns = [] } = outside;
  const before = older?.after;
  const count = files.length + moreFiles;
  const branch = from?.branch === to?.branch ? undefined : to?.branch;
  const others = turns.join(", ");
  const isRestored = undoPoints.some(({ createdAt }) => createdAt >= (older?.endedAt ?? 0) && createdAt < at);
  const title = `changes before ${name}`;
  return {
    kind: "outside",
    id: `${name}~`,
    at,
    root,
    mark: "◌",
    meaning: "changes between turns",
    title,
    name: isRestored ? "You, and the restore" : others ? `You, or ${others}` : "You",
    says: joined(": ", branch && `switched to ${branch}`, files.map(({ path }) => path.split("/").pop()).slice(0, 3).join(", ")) || "another commit checked out",
    changed: count ? plural(count, "file") : "",
    facts: `before ${name}, ${when(at)}`,
    text: joined(" ", branch && `Switched to ${branch}.`, count && `Changed by you, or by ${others || "a program that is not an agent"}.`),
    groups: [],
    search: searched(...files.map(({ path }) => path)),
    before,
    after,
    ...(before && after ? { own: { from: before, to: after } } : { note: notSaved("before") }),
    target: before ? { id: before, root, title: `the state before the ${title}` } : undefined,
    action: "Restore before these changes …",
    checkpoints: [],
  };
}

/** Returns what a checkpoint is named for the user. */
export function checkpointTitle({ id, kind, label, turn }: Checkpoint): string {
  return label ?? (turn?.name ? `${kind === "turnEnd" ? "the end of" : "before"} ${turn.name}` : kind === "undoPoint" ? "the state before a restore" : `checkpoint ${id.slice(0, 8)}`);
}

function checkpointEntry(checkpoint: Checkpoint, checkpoints: readonly Checkpoint[], previous: Checkpoint | undefined): Entry {
  const { id, createdAt: at, root, kind, label, group, head, turn, taskId, restoredId, undoneBy, added, modified, deleted, durationMs } = checkpoint;
  const common = {
    id,
    at,
    root,
    groups: present([turn?.agent, turn?.name && sessionName({ name: turn.name }), taskId && TASK + taskId]),
    before: id,
    after: id,
    checkpoints: [id],
  };
  if (kind === "undoPoint") {
    const restored = checkpoints.find((other) => other.id === restoredId);
    const name = `${restored?.kind === "undoPoint" ? "Restore undone" : "Restored"}${undoneBy ? ", then undone" : ""}`;
    const title = `restore at ${when(at)}`;
    return {
      ...common,
      kind: "restore",
      mark: "↺",
      meaning: "restore",
      title,
      name,
      says: restored ? checkpointTitle(restored) : (restoredId?.slice(0, 8) ?? "a conversation"),
      facts: when(at),
      text: restored && `To ${checkpointTitle(restored)}, saved ${when(restored.createdAt)}.`,
      search: searched(id, label, turn?.name, restoredId),
      ...(restoredId ? { own: { from: id, to: restoredId } } : { note: "This restore changed no files." }),
      target: undoneBy ? undefined : { id, root, title, undo: true },
      action: "Undo this restore …",
    };
  }
  const changed = added + modified + deleted;
  const title = checkpointTitle(checkpoint);
  return {
    ...common,
    kind: "checkpoint",
    mark: group ? "▣" : "■",
    meaning: "checkpoint",
    title,
    name: title,
    says: kind === "imported" ? "imported" : kind === "manual" ? "saved by you" : "saved automatically",
    changed: changed ? plural(changed, "file") : "no changes",
    facts: facts(when(at), head?.branch && `on ${head.branch}`, plural(checkpoint.files, "file"), size(checkpoint.bytes), `saved in ${durationMs < 1000 ? `${durationMs} ms` : duration(durationMs)}`, id.slice(0, 8), group && plural(group.length, "folder")),
    search: searched(id, label, turn?.name, turn?.prompt),
    ...(previous ? { own: { from: previous.id, to: id } } : { own: { from: id }, note: "The oldest checkpoint, compared with now." }),
    target: { id, root, title },
    action: "Restore …",
  };
}

/** Returns all entries, newest first. `until` is the time before which something may be missing. */
function entries(turns: readonly ListedTurn[], checkpoints: readonly Checkpoint[], until: number): Entry[] {
  const listed = new Set(turns.map(({ name }) => name));
  const undoPoints = checkpoints.filter(({ kind }) => kind === "undoPoint");
  // What was there before in the same root.
  const turnBefore: Record<string, ListedTurn> = {};
  const checkpointBefore: Record<string, Checkpoint> = {};
  const all: (Entry | undefined)[] = [];
  for (const turn of turns.toReversed()) {
    all.push(outsideEntry(turn, turnBefore[turn.root], undoPoints), turnEntry(turn, checkpoints));
    if (turn.after) {
      turnBefore[turn.root] = turn;
    }
  }
  for (const checkpoint of checkpoints.toReversed()) {
    // Those at the start and the end of a turn are part of its row.
    if (checkpoint.kind === "undoPoint" || !listed.has(checkpoint.turn?.name ?? "")) {
      all.push(checkpointEntry(checkpoint, checkpoints, checkpointBefore[checkpoint.root]));
    }
    checkpointBefore[checkpoint.root] = checkpoint;
  }
  // A turn is newer than what changed before it, which has the same time.
  return present(all)
    .reverse()
    .filter(({ at }) => at >= until)
    .sort((a, b) => b.at - a.at);
}

/** Returns the rows to show, by day: those of an agent, a session or a conversation that contain a text. */
export function rows(all: readonly Entry[], group = "", text = ""): Row[] {
  const result: Row[] = [];
  let last: string | undefined;
  for (const entry of all) {
    if ((!group || entry.groups.includes(group)) && entry.search.includes(text.toLowerCase())) {
      const label = day(entry.at);
      if (label !== last) {
        result.push({ kind: "day", id: `day ${label}`, label });
        last = label;
      }
      result.push(entry);
    }
  }
  return result;
}

/** The timeline as far as it is loaded. */
export interface History {
  all: Entry[];
  /** The loaded checkpoints, with those of turns. */
  checkpoints: Checkpoint[];
  /** Agents, sessions and conversations to choose from, with their names. */
  groups: [id: string, name: string][];
  error?: RequestError | undefined;
  loading: boolean;
  /** True if there is more; `more` loads it. */
  hasMore: boolean;
  more: () => void;
  reload: () => Promise<void>;
}

const EVENTS = ["didCreateCheckpoint", "didChangeTurns"] as const;

/** Maximum number of turns of a request. */
const PAGE = 1000;

/** Loads the timeline: a number of the newest turns and checkpoints, which grows when the end is reached. */
export function useHistory(root: string | undefined): History {
  const [count, setCount] = useState(40);
  const turns = useRequest("listTurns", { root, limit: Math.min(count, PAGE) }, EVENTS, true);
  // A turn has two.
  const checkpoints = useRequest("listCheckpoints", { root, limit: count * 3 }, EVENTS, true);
  const tasks = useRequest("listTasks", { limit: 20 }, EVENTS).data?.tasks ?? [];
  const newest = turns.data?.turns ?? [];
  const oldest = newest.at(-1)?.startedAt ?? 0;
  // Turns before the newest page are loaded once.
  const [older, setOlder] = useState<readonly ListedTurn[]>([]);
  const [isWhole, setWhole] = useState(false);
  const { busy, problem, run } = useAction();
  const loaded = [...newest, ...older.filter(({ startedAt }) => startedAt < oldest)];
  const saved = checkpoints.data?.checkpoints ?? [];
  // The answer to half of it is shown while the number doubles.
  const hasMoreTurns = newest.length >= Math.min(turns.loading ? count / 2 : count, PAGE) && !isWhole;
  const hasMoreCheckpoints = saved.length >= (checkpoints.loading ? count / 2 : count) * 3;
  const all = useMemo(
    () => entries(loaded, saved, Math.max((hasMoreTurns && loaded.at(-1)?.startedAt) || 0, (hasMoreCheckpoints && saved.at(-1)?.createdAt) || 0)),
    [turns.data, checkpoints.data, older],
  );
  const loading = turns.loading || checkpoints.loading || busy;
  return {
    all,
    checkpoints: saved,
    groups: [
      ...[...new Set(loaded.flatMap((turn) => [turn.agent, sessionName(turn)]))].sort().map((name): [string, string] => [name, name]),
      ...tasks.filter(({ taskId }) => saved.some((checkpoint) => checkpoint.taskId === taskId)).map(({ taskId, title }): [string, string] => [TASK + taskId, `conversation: ${title}`]),
    ],
    error: turns.error ?? checkpoints.error ?? problem,
    loading: loading && !(turns.data && checkpoints.data),
    hasMore: hasMoreTurns || hasMoreCheckpoints,
    more: () => {
      if (!loading) {
        setCount(count * 2);
        if (count >= PAGE && hasMoreTurns) {
          run(async () => {
            const page = (await rpc("listTurns", { root, limit: PAGE, before: loaded.at(-1)?.name })).turns;
            setOlder([...loaded, ...page]);
            setWhole(page.length < PAGE);
          });
        }
      }
    },
    reload: () => (turns.reload(), checkpoints.reload()),
  };
}
