// Packs what `npm run build` made into `sightline-<version>.vsix`. Everything
// the extension needs is in the bundle, so no package is taken along.

import { copyFile, readFile, rm } from "node:fs/promises";

import { createVSIX } from "@vscode/vsce";

const { version } = JSON.parse(await readFile("package.json", "utf8"));
const packagePath = `sightline-${version}.vsix`;

await copyFile("../../LICENSE", "LICENSE.txt");
try {
  await createVSIX({
    packagePath,
    dependencies: false,
    allowMissingRepository: true,
    rewriteRelativeLinks: false,
  });
} finally {
  await rm("LICENSE.txt");
}
