/** Small parts that the screens share. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import type { Answer } from "./state";
import { split, visible } from "./text";
import type { RequestError } from "./transport";

/** Where nothing is to be shown: why, and what to do. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** What to do about an error, by its kind. */
const HINTS: Partial<Record<RequestError["kind"], string>> = {
  unreachable: "It may have ended. Start `sightline ui` again, or wait until the connection is back.",
  unauthorized: "Run `sightline ui` again, and open the address that it prints.",
  busy: "Another operation is in progress. Try again when it has ended.",
  missing: "This version of Sightline does not answer this request. Install a newer one.",
  storage: "`sightline doctor` checks the data directory.",
};

/** An error, and a button that tries again. */
export function Failure({ error, retry }: { error: RequestError; retry?: () => void }) {
  return (
    <div class="failure" role="alert">
      <p>{visible(error.message)}</p>
      {HINTS[error.kind] && (
        <p>
          <Code text={HINTS[error.kind] ?? ""} />
        </p>
      )}
      {retry && (
        <button onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Text with commands in backquotes. */
export function Code({ text }: { text: string }) {
  return <>{text.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>;
}

/** Why something that was asked for did not happen. */
export function Alert({ text }: { text: string | undefined }) {
  return text === undefined ? null : (
    <p class="failure" role="alert">
      {visible(text)}
    </p>
  );
}

/** A mark of a state: good, bad, or neither. */
export function Dot({ ok }: { ok?: boolean | undefined }) {
  return <span class={`dot ${ok === undefined ? "" : ok ? "dot-on" : "dot-bad"}`} aria-hidden="true" />;
}

interface SelectProps {
  label: string;
  value: string | undefined;
  /** Values, or pairs of value and text. */
  options: readonly (string | readonly [value: string, text: string])[];
  choose: (value: string) => void;
}

/** A choice of one. */
export function Select({ label, value = "", options, choose }: SelectProps) {
  return (
    <select aria-label={label} value={value} onChange={({ currentTarget }) => choose(currentTarget.value)}>
      {options.map((option) => {
        const [key, text] = typeof option === "string" ? [option, option] : option;
        return (
          <option key={key} value={key}>
            {visible(text)}
          </option>
        );
      })}
    </select>
  );
}

/** Stands for an answer that is not there: why, or that it is awaited. */
export function Pending({ answer, what }: { answer: Answer<unknown>; what: string }) {
  if (answer.error) {
    return <Failure error={answer.error} retry={answer.reload} />;
  }
  return answer.loading ? <Loading what={what} /> : null;
}

export function Loading({ what }: { what: string }) {
  return (
    <p class="loading" role="status">
      Loading {what} …
    </p>
  );
}

/** A path: its folder dim, its name always readable. */
export function Path({ path }: { path: string }) {
  const [folder, name] = split(path);
  return (
    <span class="path" title={visible(path)}>
      <span class="path-folder">{visible(folder)}</span>
      <bdi class="path-name">{visible(name)}</bdi>
    </span>
  );
}

/** Added and removed lines. */
export function Counts({ additions, deletions }: { additions: number; deletions: number }) {
  return (
    <span class="counts" aria-label={`${additions} lines added, ${deletions} removed`} role="img">
      <span class="plus">+{additions}</span> <span class="minus">−{deletions}</span>
    </span>
  );
}

/** Copies a text to the clipboard. */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button onClick={copy}>
      {copied ? "Copied" : label}
    </button>
  );
}

/** Maximum number of rows in the document. */
const MAX_ROWS = 60;

interface ListProps<T> {
  items: readonly T[];
  keyOf: (item: T) => string;
  heightOf: (item: T) => number;
  render: (item: T) => ComponentChildren;
  /** Key of the item to keep in view when it changes. */
  shown?: string;
  label: string;
  /** Called when the end comes into view. */
  onEnd?: () => void;
  onKeyDown?: (event: KeyboardEvent) => void;
}

/** A list of which only the visible rows are in the document. */
export function WindowedList<T>({ items, keyOf, heightOf, render, shown, label, onEnd, onKeyDown }: ListProps<T>) {
  const box = useRef<HTMLUListElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  // The top of each row, and the height of all.
  const tops = useMemo(() => {
    let top = 0;
    return [...items.map((item) => (top += heightOf(item)) - heightOf(item)), top];
  }, [items]);
  const total = tops.at(-1) ?? 0;

  const measure = (): void => {
    const element = box.current;
    if (element) {
      setView({ top: element.scrollTop, height: element.clientHeight });
    }
  };
  useLayoutEffect(() => {
    measure();
    const observer = new ResizeObserver(measure);
    if (box.current) {
      observer.observe(box.current);
    }
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    const index = items.findIndex((item) => keyOf(item) === shown);
    const top = tops[index];
    const bottom = tops[index + 1];
    if (!element || index < 0 || top === undefined || bottom === undefined) {
      return;
    }
    if (top < element.scrollTop) {
      // The heading above the first row stays in view.
      element.scrollTop = index <= 1 ? 0 : top;
    } else if (bottom > element.scrollTop + element.clientHeight) {
      element.scrollTop = bottom - element.clientHeight;
    }
  }, [shown]);

  let first = tops.findIndex((_, index) => (tops[index + 1] ?? total) > view.top);
  first = Math.max(0, first - 4);
  let end = first;
  while (end < items.length && end - first < MAX_ROWS && (tops[end] ?? 0) < view.top + view.height + 200) {
    end++;
  }
  useLayoutEffect(() => {
    if (end >= items.length) {
      onEnd?.();
    }
  }, [end, items]);

  return (
    <ul class="list" aria-label={label} ref={box} onScroll={measure} onKeyDown={onKeyDown}>
      <li class="list-space" aria-hidden="true" style={{ height: `${tops[first] ?? 0}px` }} />
      {items.slice(first, end).map((item) => (
        <li key={keyOf(item)} style={{ height: `${heightOf(item)}px` }}>
          {render(item)}
        </li>
      ))}
      <li class="list-space" aria-hidden="true" style={{ height: `${total - (tops[end] ?? total)}px` }} />
    </ul>
  );
}
