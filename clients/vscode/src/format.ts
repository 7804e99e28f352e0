/** Formats checkpoints, changed files and connected agents. Does not use the API of VS Code. */

import type { DidChangeBridgesParams, DifferenceStatus } from "../../types/protocol";

const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 365 * 24 * 3600],
  ["month", 30 * 24 * 3600],
  ["week", 7 * 24 * 3600],
  ["day", 24 * 3600],
  ["hour", 3600],
  ["minute", 60],
];

/** Formats a time in the past, in milliseconds since the Unix epoch: `2 hours ago`. */
export function relativeTime(time: number, now: number): string {
  const seconds = Math.max(0, now - time) / 1000;
  const unit = UNITS.find(([, size]) => seconds >= size);
  if (!unit) {
    return "just now";
  }
  const [name, size] = unit;
  return new Intl.RelativeTimeFormat("en").format(-Math.floor(seconds / size), name);
}

/** Letter, name and color of a kind of change, as in the source control view. */
export interface StatusMark {
  letter: string;
  name: string;
  color: string;
}

const MARKS: { [status in DifferenceStatus]: StatusMark } = {
  added: { letter: "A", name: "Added", color: "gitDecoration.addedResourceForeground" },
  modified: { letter: "M", name: "Modified", color: "gitDecoration.modifiedResourceForeground" },
  deleted: { letter: "D", name: "Deleted", color: "gitDecoration.deletedResourceForeground" },
  renamed: { letter: "R", name: "Renamed", color: "gitDecoration.renamedResourceForeground" },
  typeChanged: { letter: "T", name: "Type changed", color: "gitDecoration.modifiedResourceForeground" },
};

/** Returns the mark of a kind of change; none if the server is newer and the kind unknown. */
export function statusMark(status: string): StatusMark | undefined {
  return Object.hasOwn(MARKS, status) ? MARKS[status as DifferenceStatus] : undefined;
}

/** Describes the agents that are connected by their IDE protocol, in lines. */
export function describeAgents({ agents, isPaused }: DidChangeBridgesParams): string[] {
  const names = agents.length === 0 ? [] : [`Connected agents: ${agents.join(", ")}`];
  return isPaused ? [...names, "The selection is not shown to agents"] : names;
}
