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
  lines: number;
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
      hunks.push({ header: line, blocks: [], lines: 0 });
      continue;
    }
    const hunk = hunks.at(-1);
    if (!hunk) {
      continue;
    }
    const kind = KINDS[line[0] ?? ""] ?? "same";
    let block = hunk.blocks.at(-1);
    if (block?.kind !== kind) {
      block = { kind, before, after, lines: [] };
      hunk.blocks.push(block);
    }
    // A note such as "No newline at end of file" has no sign of its kind.
    block.lines.push(kind === "note" ? line.slice(2) : line.slice(1));
    hunk.lines++;
    before += kind === "same" || kind === "removed" ? 1 : 0;
    after += kind === "same" || kind === "added" ? 1 : 0;
  }
  return hunks;
}

/** Returns the first lines of hunks, at most `limit`. */
export function cut(hunks: readonly Hunk[], limit: number): Hunk[] {
  const result: Hunk[] = [];
  let left = limit;
  for (const hunk of hunks) {
    if (left <= 0) {
      break;
    }
    if (hunk.lines <= left) {
      result.push(hunk);
      left -= hunk.lines;
      continue;
    }
    const blocks: Block[] = [];
    for (const block of hunk.blocks) {
      if (left > 0) {
        blocks.push({ ...block, lines: block.lines.slice(0, left) });
        left -= block.lines.length;
      }
    }
    result.push({ ...hunk, blocks });
    left = 0;
  }
  return result;
}
