// The same work in node, timed inside the process. Reads one JSON command a
// line, writes one JSON answer a line: { ms, ...what it found }.
//   {"op":"versions"}
//   {"op":"json","file":F}                  parse F and write it again
//   {"op":"tokens","file":F,"with":W}       count the tokens of text F with package W
//   {"op":"ignore","patterns":F,"paths":G}  judge the paths of G by the patterns of F

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);

/** The version a package says of itself. */
function version(name, entry = name) {
  const found = require.resolve(entry);
  for (let folder = dirname(found); folder !== dirname(folder); folder = dirname(folder)) {
    try {
      const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      if (manifest.name === name && manifest.version) return manifest.version;
    } catch {
      // Not here: one folder up.
    }
  }
  return 'unknown';
}

const texts = new Map();
function text(file) {
  if (!texts.has(file)) texts.set(file, readFileSync(file, 'utf8'));
  return texts.get(file);
}

const lists = new Map();
function lines(file) {
  if (!lists.has(file)) lists.set(file, text(file).split('\n').filter((line) => line !== ''));
  return lists.get(file);
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

const operations = {
  versions: async () => ({
    node: process.versions.node,
    ignore: version('ignore'),
    'vscode-languageserver': version('vscode-languageserver', 'vscode-languageserver/node'),
    'gpt-tokenizer': version('gpt-tokenizer'),
    'js-tiktoken': version('js-tiktoken'),
  }),
  json: async ({ file }) => {
    const input = text(file);
    const start = performance.now();
    const bytes = JSON.stringify(JSON.parse(input)).length;
    return { ms: performance.now() - start, bytes };
  },
  tokens: async ({ file, with: name }) => {
    const input = text(file);
    const count = (loaded[name] ??= await counters[name]());
    const start = performance.now();
    const tokens = count(input);
    return { ms: performance.now() - start, tokens };
  },
  ignore: async ({ patterns, paths }) => {
    const ignore = (loaded.ignore ??= (await import('ignore')).default);
    const [rules, asked] = [lines(patterns), lines(paths)];
    const start = performance.now();
    // It remembers every path it judged: each time a new one.
    const judge = ignore().add(rules);
    let ignored = 0;
    for (const path of asked) if (judge.ignores(path)) ignored += 1;
    return { ms: performance.now() - start, ignored };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(await operations[command.op](command))}\n`);
}
