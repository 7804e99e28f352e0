/** Formats checkpoints, changed files and connected agents. Does not use the API of VS Code. */

import type { DidChangeBridgesParams, DifferenceStatus } from "../../types/protocol";

/** Error of a command whose row is not in its view. */
export const GONE = "The list has changed since the menu was opened. Nothing was done.";

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

/** Formats a time of the protocol: the time of day and, on another day, the date. */
export function when(milliseconds: number): string {
  const date = new Date(milliseconds);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? date.toLocaleTimeString() : date.toLocaleString();
}

/** Formats the hour and minute of a time of the protocol. */
export function clock(milliseconds: number): string {
  return new Date(milliseconds).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

/** Names the day of a time of the protocol: `Today`, `Yesterday`, `Monday, November 23`. */
export function dayName(milliseconds: number, now: number): string {
  const date = new Date(milliseconds);
  const days = [new Date(now), new Date(new Date(now).setDate(new Date(now).getDate() - 1))];
  const index = days.findIndex((day) => day.toDateString() === date.toDateString());
  const long = { weekday: "long", month: "long", day: "numeric" } as const;
  const year = date.getFullYear() === days[0]?.getFullYear() ? {} : { year: "numeric" as const };
  return ["Today", "Yesterday"][index] ?? date.toLocaleDateString("en", { ...long, ...year });
}

/** Quotes a text of a user. */
export function quoted(text: string): string {
  return `“${text}”`;
}

/** Formats a number with a noun: `1 file`, `2 files`. */
export function count(number: number, thing: string): string {
  return `${number} ${thing}${number === 1 ? "" : "s"}`;
}

/** Formats a size: `12 kB`, `3.4 MB`. */
export function size(bytes: number): string {
  return bytes < 1_000_000 ? `${Math.ceil(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
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
