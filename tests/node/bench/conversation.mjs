// The same work in node, timed inside the process. Reads one JSON command a
// line, writes one JSON answer a line: { ms, ...what it found }.
//   {"op":"versions"}
//   {"op":"json","file":F}            parse F and write it again
//   {"op":"tokens","file":F,"with":W}  count the tokens of text F with package W

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);

/** The version a package says of itself. */
function version(name) {
  const entry = require.resolve(name);
  for (let folder = dirname(entry); folder !== dirname(folder); folder = dirname(folder)) {
    try {
      const found = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      if (found.name === name && found.version) return found.version;
    } catch {
      // Not here: one folder up.
    }
  }
  return 'unknown';
}

const files = new Map();
function text(file) {
  if (!files.has(file)) files.set(file, readFileSync(file, 'utf8'));
  return files.get(file);
}

const counters = {
  'gpt-tokenizer': async () => (await import('gpt-tokenizer/encoding/o200k_base')).countTokens,
  'js-tiktoken': async () => {
    const { Tiktoken } = await import('js-tiktoken/lite');
    const ranks = (await import('js-tiktoken/ranks/o200k_base')).default;
    const encoding = new Tiktoken(ranks);
    return (input) => encoding.encode(input).length;
  },
};
const loaded = {};

async function run(command) {
  if (command.op === 'versions') {
    return {
      node: process.versions.node,
      'gpt-tokenizer': version('gpt-tokenizer'),
      'js-tiktoken': version('js-tiktoken'),
    };
  }
  const input = text(command.file);
  if (command.op === 'json') {
    const start = performance.now();
    const bytes = JSON.stringify(JSON.parse(input)).length;
    return { ms: performance.now() - start, bytes };
  }
  loaded[command.with] ??= await counters[command.with]();
  const start = performance.now();
  const tokens = loaded[command.with](input);
  return { ms: performance.now() - start, tokens };
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await run(JSON.parse(line)))}\n`);
}
