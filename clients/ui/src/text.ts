/** Text for the screen: names and contents that cannot pass for something else, numbers, times. */

/** Control characters, invisible characters, and those that change the direction of text; not the variants of a sign. */
const UNPRINTABLE = /[[\p{Cc}\p{DI}\p{Zl}\p{Zp}\ufff9-\ufffb]--[\ufe00-\ufe0f]]/gv;

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
  return text.replace(UNPRINTABLE, (character) => (/[\n\t]/.test(character) ? character : mark(character)));
}

/** Returns `1 file`, `2 files`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

type Optional = string | number | false | null | undefined;

/** Returns the texts that there are, with a separator between them. */
export function joined(separator: string, ...all: Optional[]): string {
  return all.filter(Boolean).join(separator);
}

/** Returns the facts that there are, as one line. */
export function facts(...all: Optional[]): string {
  return joined(" · ", ...all);
}

/** Returns the sum of a number of each item. */
export function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}

/** Returns a size such as `12 MB`. */
export function size(bytes: number): string {
  const power = Math.min(4, Math.max(0, Math.floor(Math.log10(bytes) / 3)));
  const value = bytes / 1000 ** power;
  return `${value.toFixed(value < 10 && power > 0 ? 1 : 0)} ${["B", "kB", "MB", "GB", "TB"][power]}`;
}

/** Returns the time of day, such as `14:02`. */
export function clock(at: number, seconds = false): string {
  return new Date(at).toTimeString().slice(0, seconds ? 8 : 5);
}

/** Returns `Today` or a date. */
export function day(at: number): string {
  const date = new Date(at);
  return date.toDateString() === new Date().toDateString() ? "Today" : date.toLocaleDateString([], { dateStyle: "full" });
}

/** Returns the day and the time, as `Today, 14:02`. */
export function when(at: number): string {
  return `${day(at)}, ${clock(at)}`;
}

/** Returns a duration such as `2 min`. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  const minutes = Math.round(seconds / 60);
  return seconds < 60 ? `${seconds} s` : minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Splits a path into its folder, with `/`, and its name, with the `/` at its end. */
export function split(path: string): [folder: string, name: string] {
  const end = path.lastIndexOf("/", path.length - 2) + 1;
  return [path.slice(0, end), path.slice(end)];
}
