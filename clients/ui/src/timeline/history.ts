/** The rows of the timeline: turns of agents, what changed between them, checkpoints and restores. */

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";

import type { Checkpoint, ListedTurn } from "../../../types/protocol";
import { useEvents, transport } from "../state";
import { day, when } from "../text";
import { type RequestError, requestError } from "../transport";

/** A row with something that happened. */
export type Entry =
  | { kind: "turn"; id: string; at: number; turn: ListedTurn }
  /**
   * What changed outside turns, before the first edit of `turn`. `from` is the state before it. `isRestored` if a
   * restore is part of it.
   */
  | { kind: "outside"; id: string; at: number; turn: ListedTurn; from?: string; isRestored: boolean }
  | { kind: "checkpoint"; id: string; at: number; checkpoint: Checkpoint }
  /** An undo point. `restored` is what was restored, if it is loaded. */
  | { kind: "restore"; id: string; at: number; checkpoint: Checkpoint; restored?: Checkpoint };

export type Row = Entry | { kind: "day"; id: string; label: string };

/** What the timeline shows. */
export interface Filter {
  /** Name of an agent, or of a session such as `claude-2`. */
  agent?: string;
  /** Part of a name, a prompt, a label or a path. */
  text?: string;
}

/** Number of turns in the first request. */
const FIRST_TURNS = 100;
/** Number of turns in further requests. */
const MORE_TURNS = 500;
/** Number of checkpoints in the first request. It is doubled for further ones. */
const FIRST_CHECKPOINTS = 300;

/** Returns the name of the session of a turn: `claude-2` of `claude-2.3`. */
export function sessionName(turn: { name: string }): string {
  return turn.name.slice(0, turn.name.lastIndexOf("."));
}

/** Returns all entries, newest first. `until` is the time before which something may be missing. */
export function entries(turns: readonly ListedTurn[], checkpoints: readonly Checkpoint[], until: number): Entry[] {
  const listed = new Set(turns.map(({ name }) => name));
  const all: Entry[] = [];
  turns.forEach((turn, index) => {
    all.push({ kind: "turn", id: turn.name, at: turn.startedAt, turn });
    const outside = turn.outside;
    if (outside && (outside.files.length > 0 || outside.from !== undefined || outside.to !== undefined)) {
      const before = turns.slice(index + 1).find((older) => older.root === turn.root && older.after !== undefined);
      const since = before?.endedAt ?? 0;
      const isRestored = checkpoints.some(({ kind, createdAt }) => kind === "undoPoint" && createdAt >= since && createdAt < turn.startedAt);
      all.push({ kind: "outside", id: `${turn.name}~`, at: turn.startedAt, turn, from: before?.after, isRestored });
    }
  });
  for (const checkpoint of checkpoints) {
    const { id, createdAt: at, turn } = checkpoint;
    // Those at the start and the end of a turn are part of its row.
    if (checkpoint.kind === "undoPoint") {
      const restored = checkpoints.find((other) => other.id === checkpoint.restoredId);
      all.push({ kind: "restore", id, at, checkpoint, restored });
    } else if (turn?.name === undefined || !listed.has(turn.name)) {
      all.push({ kind: "checkpoint", id, at, checkpoint });
    }
  }
  // What changed outside is older than the turn with the same time.
  const rank = { turn: 1, checkpoint: 1, restore: 1, outside: 0 };
  return all.filter(({ at }) => at >= until).sort((a, b) => b.at - a.at || rank[b.kind] - rank[a.kind]);
}

function texts(entry: Entry): (string | undefined)[] {
  if (entry.kind === "turn") {
    const { name, prompt, files } = entry.turn;
    return [name, prompt, ...files.map(({ path }) => path)];
  }
  if (entry.kind === "outside") {
    return ["changes outside turns", ...(entry.turn.outside?.files.map(({ path }) => path) ?? [])];
  }
  const { id, label, turn, restoredId } = entry.checkpoint;
  return [id, label, turn?.name, turn?.prompt, restoredId, entry.kind];
}

function matches(entry: Entry, { agent, text }: Filter): boolean {
  if (agent) {
    const turn = "turn" in entry ? entry.turn : undefined;
    if (!turn || (turn.agent !== agent && sessionName(turn) !== agent)) {
      return false;
    }
  }
  const wanted = text?.toLowerCase();
  return !wanted || texts(entry).some((part) => part?.toLowerCase().includes(wanted));
}

/** Returns the rows to show: the matching entries, by day. */
export function rows(all: readonly Entry[], filter: Filter): Row[] {
  const result: Row[] = [];
  let last: string | undefined;
  for (const entry of all) {
    if (!matches(entry, filter)) {
      continue;
    }
    const label = day(entry.at);
    if (label !== last) {
      result.push({ kind: "day", id: `day ${label}`, label });
      last = label;
    }
    result.push(entry);
  }
  return result;
}

/** Returns what a checkpoint is named for the user. */
export function checkpointTitle({ id, kind, label, turn }: Checkpoint): string {
  const state = turn?.name && `${kind === "turnEnd" ? "the end of" : "before"} ${turn.name}`;
  return label ?? state ?? (kind === "undoPoint" ? "the state before a restore" : `checkpoint ${id.slice(0, 8)}`);
}

/** Returns what a restore did. The undo of a restore is one, too. */
export function restoreTitle({ checkpoint, restored }: Entry & { kind: "restore" }): string {
  const done = restored?.kind === "undoPoint" ? "Restore undone" : "Restored";
  return checkpoint.undoneBy === undefined ? done : `${done}, then undone`;
}

/** Returns what the entry is named for the user. */
export function title(entry: Entry): string {
  switch (entry.kind) {
    case "turn":
      return entry.turn.name;
    case "outside":
      return `changes before ${entry.turn.name}`;
    case "checkpoint":
      return checkpointTitle(entry.checkpoint);
    case "restore":
      return `restore at ${when(entry.at)}`;
  }
}

/** Returns the state that the entry begins and ends with, as ids for a comparison. */
export function states(entry: Entry): { before: string | undefined; after: string | undefined } {
  switch (entry.kind) {
    case "turn":
      return { before: entry.turn.name, after: `${entry.turn.name}+` };
    case "outside":
      return { before: entry.from, after: entry.turn.before };
    case "checkpoint":
    case "restore":
      return { before: entry.checkpoint.id, after: entry.checkpoint.id };
  }
}

/** The timeline as far as it is loaded. */
export interface History {
  all: Entry[];
  /** The loaded checkpoints, with those of turns. */
  checkpoints: Checkpoint[];
  /** Agents and sessions of the loaded turns. */
  agents: string[];
  sessions: string[];
  error?: RequestError;
  loading: boolean;
  /** True if there is more; `more` loads it. */
  hasMore: boolean;
  more: () => void;
  reload: () => void;
}

interface Loaded {
  turns: ListedTurn[];
  checkpoints: Checkpoint[];
  hasMoreTurns: boolean;
  hasMoreCheckpoints: boolean;
}

/** Loads the timeline, and the newest part of it again on events. */
export function useHistory(root: string | undefined): History {
  const [loaded, setLoaded] = useState<Loaded>();
  const [error, setError] = useState<RequestError>();
  const state = useRef({ busy: false, stale: false, checkpoints: FIRST_CHECKPOINTS, loaded, root });
  state.current.loaded = loaded;

  const load = useCallback(
    async (isMore: boolean): Promise<void> => {
      const current = state.current;
      if (current.busy) {
        current.stale ||= !isMore;
        return;
      }
      current.busy = true;
      const folder = { root };
      const known = isMore ? current.loaded : undefined;
      const oldest = known?.turns.at(-1);
      if (isMore && known?.hasMoreCheckpoints) {
        current.checkpoints *= 2;
      }
      try {
        const limit = isMore ? MORE_TURNS : FIRST_TURNS;
        const [newTurns, listed] = await Promise.all([
          isMore && !known?.hasMoreTurns
            ? []
            : transport.rpc("sightline/listTurns", { ...folder, limit, before: oldest?.name }).then(({ turns }) => turns),
          transport.rpc("sightline/listCheckpoints", { ...folder, limit: current.checkpoints }).then(({ checkpoints }) => checkpoints),
        ]);
        const older = state.current.loaded?.turns ?? [];
        const last = newTurns.at(-1);
        // The newest turns replace what is known; older ones stay, with what was loaded of them.
        const kept = known ? known.turns : last ? older.filter(({ startedAt }) => startedAt < last.startedAt) : [];
        const turns = known ? [...kept, ...newTurns] : [...newTurns, ...kept];
        const hasMoreTurns = known
          ? known.hasMoreTurns && newTurns.length === limit
          : newTurns.length === limit && (kept.length === 0 || (current.loaded?.hasMoreTurns ?? true));
        setLoaded({ turns, checkpoints: listed, hasMoreTurns, hasMoreCheckpoints: listed.length === current.checkpoints });
        setError(undefined);
      } catch (failure) {
        setError(requestError(failure));
      } finally {
        current.busy = false;
        if (current.stale) {
          current.stale = false;
          void load(false);
        }
      }
    },
    [root],
  );

  const reload = useCallback(() => void load(false), [load]);
  const more = useCallback(() => void load(true), [load]);
  useEffect(() => {
    if (state.current.root !== root) {
      state.current.root = root;
      state.current.checkpoints = FIRST_CHECKPOINTS;
      setLoaded(undefined);
    }
    reload();
  }, [reload, root]);
  useEvents(["connected", "didCreateCheckpoint", "didChangeTurns", "didChangeServer"], reload);

  const turns = loaded?.turns ?? [];
  const checkpoints = loaded?.checkpoints ?? [];
  const all = useMemo(() => {
    const until = Math.max(
      loaded?.hasMoreTurns ? (turns.at(-1)?.startedAt ?? 0) : 0,
      loaded?.hasMoreCheckpoints ? (checkpoints.at(-1)?.createdAt ?? 0) : 0,
    );
    return entries(turns, checkpoints, until);
  }, [loaded]);
  return {
    all,
    checkpoints,
    agents: [...new Set(turns.map(({ agent }) => agent))].sort(),
    sessions: [...new Set(turns.map(sessionName))].sort(),
    error,
    loading: loaded === undefined && error === undefined,
    hasMore: loaded !== undefined && (loaded.hasMoreTurns || loaded.hasMoreCheckpoints),
    more,
    reload,
  };
}
