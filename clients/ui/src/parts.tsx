/** Parts that the screens share. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { type Answer, useAction } from "./state";
import { split, visible } from "./text";
import type { RequestError } from "./transport";

interface Children {
  children?: ComponentChildren;
}

/** Text that matters less. */
export function Dim({ children }: Children) {
  return <span class="dim">{children}</span>;
}

/** Parts next to each other. */
export function Line({ children }: Children) {
  return <div class="line">{children}</div>;
}

/** A button that matters less. */
export function Quiet({ run, children }: Children & { run: () => void }) {
  return (
    <button class="quiet" onClick={run}>
      {children}
    </button>
  );
}

interface DoProps {
  label: string;
  /** What the button says while it is in progress. */
  doing?: string;
  run: () => Promise<unknown>;
  [attribute: string]: unknown;
}

/** A button that asks for something, and says why it did not happen. */
export function Do({ label, doing = label, run: action, ...attributes }: DoProps) {
  const { busy, problem, run } = useAction();
  return (
    <>
      <button {...attributes} disabled={busy} onClick={() => run(action)}>
        {busy ? doing : label}
      </button>
      <Alert error={problem} />
    </>
  );
}

/** What is at the end of a line. */
export function Right({ children }: Children) {
  return <span class="right">{children}</span>;
}

export function Note({ children }: Children) {
  return <p class="note">{children}</p>;
}

/** Where nothing is to be shown: why, and what to do. */
export function Empty({ title, text = "", children }: Children & { title: string; text?: string }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      <p>
        <Code text={text} />
      </p>
      {children}
    </div>
  );
}

/** An error, and a button that tries again. */
export function Failure({ error, retry }: { error: RequestError; retry: () => void }) {
  return (
    <Alert error={error}>
      {" "}
      <button onClick={retry}>Try again</button>
    </Alert>
  );
}

/** Text with commands in backquotes. */
export function Code({ text }: { text: string }) {
  return <>{text.split("`").map((part, index) => (index % 2 ? <code>{part}</code> : part))}</>;
}

/** Why something that was asked for did not happen. */
export function Alert({ error, children }: Children & { error: { message: string } | undefined }) {
  return error ? (
    <p class="failure" role="alert">
      <Code text={error.message} />
      {children}
    </p>
  ) : null;
}

/** A mark of a state: good, bad, or neither. */
export function Dot({ ok }: { ok?: boolean | undefined }) {
  return <span class={`dot ${ok === undefined ? "" : ok ? "on" : "bad"}`} aria-hidden />;
}

interface SelectProps {
  label: string;
  value: string | undefined;
  options: readonly (readonly [value: string, text: string])[];
  choose: (value: string) => void;
}

/** A choice of one. */
export function Select({ label, value = "", options, choose }: SelectProps) {
  return (
    <select aria-label={label} value={value} onChange={({ currentTarget }) => choose(currentTarget.value)}>
      {options.map(([key, text]) => (
        <option value={key}>
          {text}
        </option>
      ))}
    </select>
  );
}

/** Stands for an answer that is not there: why, or that it is awaited. */
export function Pending({ answer }: { answer: Answer<unknown> }) {
  return answer.error ? (
    <Failure error={answer.error} retry={answer.reload} />
  ) : answer.loading && !answer.data ? (
    <p class="note loading" role="status">
      Loading …
    </p>
  ) : null;
}

/** A part of a screen: a state, a title, and what is at the end of its line. Absent if nothing answers its request. */
export function Card({ title, ok, answer, right, children }: Children & { title: string; ok?: boolean; answer?: Answer<unknown>; right?: ComponentChildren }) {
  return answer?.error?.kind === "missing" ? null : (
    <section class="card">
      <Line>
        <h2>
          {ok !== undefined && <Dot ok={ok} />} {title}
        </h2>
        <Right>{right}</Right>
      </Line>
      {answer && <Pending answer={answer} />}
      {children}
    </section>
  );
}

/** Rows of a card, of which the first are shown, and a button that shows the others. */
export function Table<T>({ items, row, limit = 200 }: { items: readonly T[] | undefined; row: (item: T) => ComponentChildren; limit?: number }) {
  const [isWhole, setWhole] = useState(false);
  const hidden = isWhole ? 0 : (items?.length ?? 0) - limit;
  return (
    <>
      <ul class="table">{items?.slice(0, isWhole ? Infinity : limit).map(row)}</ul>
      {hidden > 0 && <button onClick={() => setWhole(true)}>Show {hidden.toLocaleString("en")} more</button>}
    </>
  );
}

/** A row: a state, what it is about, and what is to say. */
export function Row({ ok, what, children, ...attributes }: Children & { ok?: boolean | undefined; what: string; [name: string]: unknown }) {
  return (
    <li {...attributes}>
      <Dot ok={ok} />
      <strong class="what">{what}</strong>
      <span class="found">{children}</span>
    </li>
  );
}

/** A path: its folder dim, its name always readable. */
export function Path({ path }: { path: string }) {
  const [folder, name] = split(path);
  return (
    <span class="path" title={visible(path)}>
      {folder && <Dim>{folder}</Dim>}
      <bdi>{name}</bdi>
    </span>
  );
}

/** Added and removed lines. */
export function Counts({ additions, deletions }: { additions: number; deletions: number }) {
  return (
    <span class="counts">
      <span class="plus">+{additions}</span> <span class="minus">−{deletions}</span>
    </span>
  );
}

/** Copies a text to the clipboard. */
export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(setCopied, 1500, false);
  };
  return <button onClick={copy}>{copied ? "Copied" : label}</button>;
}

/** Maximum number of rows in the document. */
const MAX_ROWS = 60;

interface ListProps<T> {
  items: readonly T[];
  heightOf: (item: T) => number;
  render: (item: T) => ComponentChildren;
  /** Id of the item to keep in view when it changes. */
  shown: string | undefined;
  label: string;
  /** Called when the end comes into view. */
  onEnd: () => void;
}

/** A list of which only the visible rows are in the document. */
export function WindowedList<T extends { id: string }>({ items, heightOf, render, shown, label, onEnd }: ListProps<T>) {
  const box = useRef<HTMLUListElement>(null);
  const [[top, height], setView] = useState([0, 800]);
  // The top of each row, and the height of all.
  const tops = useMemo(() => {
    let next = 0;
    return [0, ...items.map((item) => (next += heightOf(item)))];
  }, [items]);
  const at = (index: number): number => tops[index] ?? 0;

  const measure = (): void => setView([box.current?.scrollTop ?? 0, box.current?.clientHeight ?? 0]);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(measure);
    observer.observe(box.current as Element);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const index = items.findIndex(({ id }) => id === shown);
    const element = box.current;
    if (element && index >= 0) {
      // The heading above the first row stays in view.
      const first = index > 1 ? at(index) : 0;
      element.scrollTop = Math.min(first, Math.max(element.scrollTop, at(index + 1) - element.clientHeight));
    }
  }, [shown]);

  const first = Math.max(0, tops.findIndex((bottom) => bottom > top) - 5);
  let end = first;
  while (end < items.length && end - first < MAX_ROWS && at(end) < top + height + 200) {
    end++;
  }
  useLayoutEffect(() => {
    if (end >= items.length) {
      onEnd();
    }
  }, [end, items]);

  const space = (pixels: number) => <li aria-hidden style={{ height: `${pixels}px` }} />;
  return (
    <ul class="list" aria-label={label} ref={box} onScroll={measure}>
      {space(at(first))}
      {items.slice(first, end).map((item) => (
        <li key={item.id} style={{ height: `${heightOf(item)}px` }}>
          {render(item)}
        </li>
      ))}
      {space(at(items.length) - at(end))}
    </ul>
  );
}
