// Bundles the extension into `dist/extension.js`, and the licences of all that
// is in it into `dist/LICENSES.txt`. `--production` leaves out what only
// debugging needs.

import { readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";

import { build } from "esbuild";

const production = process.argv.includes("--production");

const { metafile } = await build({
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  bundle: true,
  platform: "node",
  target: "node20",
  format: "cjs",
  external: ["vscode"],
  // Else parts of the language client are taken in their UMD form, whose
  // `require` cannot be followed.
  mainFields: ["module", "main"],
  minify: production,
  sourcemap: !production,
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
});

const modules = "node_modules/";
const packages = new Set(
  Object.keys(metafile.inputs)
    .filter((input) => input.includes(modules))
    .map((input) => {
      const end = input.lastIndexOf(modules) + modules.length;
      const [first, second] = input.slice(end).split("/");
      return input.slice(0, end) + (first.startsWith("@") ? `${first}/${second}` : first);
    }),
);
const licences = await Promise.all([...packages].sort().map(licence));
await writeFile("dist/LICENSES.txt", licences.join("\n\n"));

/** Name, version and licence text of the package in `folder`. */
async function licence(folder) {
  const { name, version, license } = JSON.parse(await readFile(path.join(folder, "package.json"), "utf8"));
  const file = (await readdir(folder)).find((one) => /^licen[cs]e/i.test(one));
  if (!file) {
    throw new Error(`${name} ${version} comes without a licence text`);
  }
  return `${name} ${version} (${license})\n\n${await readFile(path.join(folder, file), "utf8")}`;
}
