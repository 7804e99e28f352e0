// Loads TypeScript sources that do not use the API of VS Code.

import { fileURLToPath } from "node:url";

import { build } from "esbuild";

/** Imports `src/<name>`. */
export async function source(name) {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(`../src/${name}`, import.meta.url))],
    bundle: true,
    platform: "node",
    format: "esm",
    write: false,
  });
  return await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}
