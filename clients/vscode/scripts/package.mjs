// Packages the output of `npm run build` as `sightline-<version>.vsix`. The
// bundle contains all dependencies.

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
