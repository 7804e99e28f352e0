/** Unified diffs, as blocks of equal lines, which need few elements. */

/** Consecutive lines of one kind. `before` and `after` are the numbers of the first line. */
export interface Block {
  kind: "same" | "added" | "removed" | "note";
  before: number;
  after: number;
  lines: string[];
}

/** A part of a diff with its context. */
export interface Hunk {
  header: string;
  blocks: Block[];
}

const HEADER = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

const KINDS: Record<string, Block["kind"]> = { "+": "added", "-": "removed", "\\": "note" };

/** Parses the hunks of one file. Lines outside hunks, such as file names, are left out. */
export function parse(patch: string): Hunk[] {
  const hunks: Hunk[] = [];
  let before = 0;
  let after = 0;
  for (const line of patch.replace(/\n$/, "").split("\n")) {
    const header = HEADER.exec(line);
    if (header) {
      before = Number(header[1]);
      after = Number(header[2]);
      hunks.push({ header: line, blocks: [] });
      continue;
    }
    const blocks = hunks.at(-1)?.blocks;
    const kind = KINDS[line[0] ?? ""] ?? "same";
    let block = blocks?.at(-1);
    if (block?.kind !== kind) {
      block = { kind, before, after, lines: [] };
      blocks?.push(block);
    }
    // A note such as "No newline at end of file" has no sign of its kind.
    block.lines.push(line.slice(kind === "note" ? 2 : 1));
    before += Number(kind === "same" || kind === "removed");
    after += Number(kind === "same" || kind === "added");
  }
  return hunks;
}

/** Returns the first lines of hunks, at most `limit`, and the number of all lines. */
export function cut(hunks: readonly Hunk[], limit: number): [shown: Hunk[], lines: number] {
  let count = 0;
  const shown = hunks.map(({ header, blocks }) => ({
    header,
    blocks: blocks.flatMap((block) => {
      const left = limit - count;
      count += block.lines.length;
      return left > 0 ? { ...block, lines: block.lines.slice(0, left) } : [];
    }),
  }));
  return [shown.filter(({ blocks }) => blocks.length), count];
}
