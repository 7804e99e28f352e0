/** Which turn, or the user, wrote each line of a file. */

import type { BlameLine } from "../../../types/protocol";
import { Path, Pending } from "../parts";
import { useRequest } from "../state";
import { clock, day, visible, visibleText } from "../text";

const EVENTS = ["didChangeTurns", "didCreateCheckpoint"] as const;

/** Consecutive lines that were written together. */
interface Group {
  line: BlameLine;
  texts: string[];
}

export function Blame({ path, root, close, openTurn }: { path: string; root: string; close: () => void; openTurn: (name: string) => void }) {
  const blame = useRequest("sightline/blame", { path, root }, EVENTS);
  const file = useRequest("sightline/readFile", { path }, EVENTS);
  const texts = file.data?.text.split("\n") ?? [];
  const groups: Group[] = [];
  for (const line of blame.data?.lines ?? []) {
    const last = groups.at(-1);
    const text = texts[line.line - 1] ?? "";
    if (last && last.line.turn === line.turn && last.line.by === line.by && last.line.at === line.at) {
      last.texts.push(text);
    } else {
      groups.push({ line, texts: [text] });
    }
  }
  return (
    <section class="blame" aria-label={`Who wrote ${visible(path)}`}>
      <div class="files-head">
        <h3>
          Who wrote <Path path={path} />
        </h3>
        <button class="right" onClick={close}>
          Back to the changes
        </button>
      </div>
      <Pending answer={blame} what="the lines" />
      {blame.data?.lines.length === 0 && <p class="note">The file is empty.</p>}
      <div class="diff" tabIndex={0} role="region" aria-label="Lines">
        {groups.map(({ line, texts }) => (
          <div class="lines lines-blame" key={line.line}>
            <span class="author">{author(line, openTurn)}</span>
            <pre class="number" aria-hidden="true">
              {texts.map((_, index) => line.line + index).join("\n")}
            </pre>
            <pre class="code">{visibleText(texts.join("\n"))}</pre>
          </div>
        ))}
      </div>
    </section>
  );
}

function author({ by, turn, turns, at }: BlameLine, openTurn: (name: string) => void) {
  if (turn !== undefined) {
    return (
      <button class="link" onClick={() => openTurn(turn)}>
        {visible(turn)}
      </button>
    );
  }
  const time = at === undefined ? "" : `, ${day(at)} ${clock(at)}`;
  return <span class="dim">{visible(turns?.length ? turns.join(" or ") : by === "user" ? `you${time}` : "before the first checkpoint")}</span>;
}
