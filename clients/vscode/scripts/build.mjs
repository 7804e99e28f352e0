// Bundles the extension into `dist/extension.js` next to the page, and the licenses of the
// bundled packages into `dist/LICENSES.txt`. `--production` minifies the bundle
// and omits the source map.

import { cp, readdir, readFile, writeFile } from "node:fs/promises";
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
  // The UMD builds of the language client use a `require` that esbuild cannot
  // bundle.
  mainFields: ["module", "main"],
  minify: production,
  sourcemap: !production,
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
});

// The page, as the server has it, with its theme and its connection.
await cp("../../server/page/assets", "dist/page", { recursive: true });
await cp("src/webview", "dist/page", { recursive: true });

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
const licenses = await Promise.all([...packages].sort().map(readLicense));
await writeFile("dist/LICENSES.txt", licenses.join("\n\n"));

/** Returns the name, version and license text of a package. */
async function readLicense(folder) {
  const { name, version, license } = JSON.parse(await readFile(path.join(folder, "package.json"), "utf8"));
  const file = (await readdir(folder)).find((one) => /^licen[cs]e/i.test(one));
  if (!file) {
    throw new Error(`${name} ${version} has no license file`);
  }
  return `${name} ${version} (${license})\n\n${await readFile(path.join(folder, file), "utf8")}`;
}
