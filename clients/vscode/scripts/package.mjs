// Packages the output of `npm run build` as `sightline-<version>.vsix`. The
// bundle contains all dependencies.
//
// With SIGHTLINE_VSIX_TARGET (such as `linux-x64`), the extension contains the
// server SIGHTLINE_VSIX_PROGRAM and is written to SIGHTLINE_VSIX_FILE.
// SIGHTLINE_VSIX_REPOSITORY is the address of the repository.

import { chmod, copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";

import { createVSIX } from "@vscode/vsce";

const manifest = await readFile("package.json", "utf8");
const { version, ...rest } = JSON.parse(manifest);
const repository = process.env.SIGHTLINE_VSIX_REPOSITORY;
const target = process.env.SIGHTLINE_VSIX_TARGET;
const packagePath = process.env.SIGHTLINE_VSIX_FILE ?? `sightline-${version}.vsix`;

await rm("server", { recursive: true, force: true });
if (target) {
  const program = target.startsWith("win32-") ? "server/sightline.exe" : "server/sightline";
  await mkdir("server");
  await copyFile(process.env.SIGHTLINE_VSIX_PROGRAM, program);
  await chmod(program, 0o755);
}
await copyFile("../../LICENSE", "LICENSE.txt");
await copyFile("../../CHANGELOG.md", "CHANGELOG.md");
try {
  if (repository) {
    // vsce reads the address only from this file.
    const filled = { version, ...rest, repository: { type: "git", url: repository } };
    await writeFile("package.json", JSON.stringify(filled, null, 2));
  }
  await createVSIX({
    packagePath,
    target,
    dependencies: false,
    allowMissingRepository: true,
    rewriteRelativeLinks: false,
  });
} finally {
  await writeFile("package.json", manifest);
  await rm("LICENSE.txt");
  await rm("CHANGELOG.md");
  await rm("server", { recursive: true, force: true });
}
