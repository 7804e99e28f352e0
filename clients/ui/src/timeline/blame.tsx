/** Which turn, or the user, wrote each line of a file. */

import type { BlameLine } from "../../../types/protocol";
import { Dim, Line, Note, Path, Pending, Right } from "../parts";
import { useRequest } from "../state";
import { when } from "../text";

const EVENTS = ["didChangeTurns", "didCreateCheckpoint"] as const;

export function Blame({ path, root, close, openTurn }: { path: string; root: string; close: () => void; openTurn: (name: string) => void }) {
  const blame = useRequest("blame", { path, root }, EVENTS);
  const file = useRequest("readFile", { path }, EVENTS);
  const texts = file.data?.text.split("\n") ?? [];
  // Consecutive lines that were written together.
  const groups: [BlameLine, string[]][] = [];
  for (const line of blame.data?.lines ?? []) {
    const [first, group] = groups.at(-1) ?? [];
    const text = texts[line.line - 1] ?? "";
    if (group && first?.turn === line.turn && first?.by === line.by && first?.at === line.at) {
      group.push(text);
    } else {
      groups.push([line, [text]]);
    }
  }
  return (
    <section>
      <Line>
        <h3>
          Authors of <Path path={path} />
        </h3>
        <Right>
          <button onClick={close}>Back to the changes</button>
        </Right>
      </Line>
      <Pending answer={blame} />
      {blame.data?.lines.length === 0 && <Note>The file is empty.</Note>}
      <div class="diff" tabIndex={0} role="region" aria-label="Lines">
        {groups.map(([{ line, turn, turns, by, at }, texts]) => (
          <div class="lines blame" key={line}>
            <span>{turn ? <button class="link" onClick={() => openTurn(turn)}>{turn}</button> : <Dim>{turns?.length ? turns.join(" or ") : by !== "user" ? "before the first checkpoint" : at ? `you, ${when(at)}` : "you"}</Dim>}</span>
            <pre class="number" aria-hidden>
              {texts.map((_, index) => line + index).join("\n")}
            </pre>
            <pre>{texts.join("\n")}</pre>
          </div>
        ))}
      </div>
    </section>
  );
}
