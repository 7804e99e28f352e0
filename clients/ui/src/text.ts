/** Text for the screen: names and contents that cannot pass for something else, numbers, times. */

/** Control characters, invisible characters, and those that change the direction of text. */
const UNPRINTABLE =
  /[\0-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]/gu;

function mark(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) {
    return String.fromCodePoint(0x2400 + code);
  }
  return code === 0x7f ? "␡" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** Makes a name visible: one line, every character shown. */
export function visible(name: string): string {
  return name.replace(UNPRINTABLE, mark);
}

/** Makes text of several lines visible: line breaks and tabs stay. */
export function visibleText(text: string): string {
  return text.replace(UNPRINTABLE, (character) => (character === "\n" || character === "\t" ? character : mark(character)));
}

/** Returns `1 file`, `2 files`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** Returns a size such as `12 MB`. */
export function size(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** Returns the time of day, such as `14:02`. */
export function clock(at: number, seconds = false): string {
  return new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(seconds && { second: "2-digit" }) });
}

/** Returns `Today`, `Yesterday` or a date. */
export function day(at: number, now = Date.now()): string {
  const start = new Date(now).setHours(0, 0, 0, 0);
  if (at >= start) {
    return "Today";
  }
  if (at >= new Date(start - 1).setHours(0, 0, 0, 0)) {
    return "Yesterday";
  }
  const sameYear = new Date(at).getFullYear() === new Date(now).getFullYear();
  return new Date(at).toLocaleDateString("en-GB", {
    weekday: "long",
    day: "numeric",
    month: "long",
    ...(!sameYear && { year: "numeric" }),
  });
}

/** Returns the day and the time, as `Today, 14:02`. */
export function when(at: number): string {
  return `${day(at)}, ${clock(at)}`;
}

/** Returns a duration such as `2 min`. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) {
    return `${seconds} s`;
  }
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Returns how long ago `at` was. */
export function ago(at: number, now = Date.now()): string {
  return now - at < 5000 ? "just now" : `${duration(now - at)} ago`;
}

/** Splits a path into its folder, with `/`, and its name. */
export function split(path: string): [folder: string, name: string] {
  const end = path.lastIndexOf("/") + 1;
  return [path.slice(0, end), path.slice(end)];
}
