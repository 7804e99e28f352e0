// Bundles the page into the folder that the server embeds, `server/page/assets`, or into
// the folder given as an argument.

import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = fileURLToPath(new URL("..", import.meta.url));
const to = path.resolve(process.argv[2] ?? path.join(here, "../../server/page/assets"));

const preact = path.join(here, "node_modules/preact");
const { version } = JSON.parse(await readFile(path.join(preact, "package.json"), "utf8"));
const license = await readFile(path.join(preact, "LICENSE"), "utf8");

await mkdir(to, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: { ui: "src/main.tsx" },
  outdir: to,
  bundle: true,
  format: "iife",
  target: "es2024",
  charset: "utf8",
  minify: true,
  // What preact calls of classes, of which the page has none.
  mangleProps: /^(component(Did|Will)|getDerivedState|getSnapshot|shouldComponent|debounceRendering)/,
  tsconfigRaw: "{}",
  jsx: "transform",
  jsxFactory: "h",
  jsxFragment: "Fragment",
  inject: ["src/jsx.ts"],
  external: ["icon.svg"],
  legalComments: "none",
  logLevel: "warning",
});
await copyFile(path.join(here, "static/icon.svg"), path.join(to, "icon.svg"));
const page = await readFile(path.join(here, "static/index.html"), "utf8");
await writeFile(path.join(to, "index.html"), `${page}<!-- ui.js contains preact ${version}:\n${license.trim()}\n-->\n`);
