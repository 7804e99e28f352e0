// Simulates Zed: loads the component of the extension and implements its imports.

import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { transpileBytes } from "@bytecodealliance/jco-transpile";
import { WASIShim } from "@bytecodealliance/preview2-shim/instantiation";

/** Loads a component as JavaScript: a function that creates instances. */
export async function load(component, folder) {
  const name = "extension";
  const { files } = await transpileBytes(await readFile(component), {
    name,
    instantiation: "async",
  });
  for (const [file, content] of Array.isArray(files) ? files : Object.entries(files)) {
    const path = join(folder, file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
  }
  const { instantiate } = await import(pathToFileURL(join(folder, `${name}.js`)));
  const core = async (path) => WebAssembly.compile(await readFile(join(folder, path)));
  return (imports) => instantiate(core, imports);
}

/**
 * Creates an instance in a project.
 *
 * `settings` are the Zed settings, `program` the program found on the PATH, `shell` the
 * environment of the project shell, `directory` the working directory of the extension, and
 * `releases` the files of the archives by `owner/name tag`. While `isOffline`, downloads fail
 * at their end.
 */
export async function start(make, { settings = {}, program, shell = [], directory, releases = {} } = {}) {
  const zed = { asked: [], statuses: [], downloads: 0, isOffline: false };
  class Worktree {
    id() {
      return 7n;
    }
    rootPath() {
      return "/home/me/shop";
    }
    readTextFile(path) {
      throw `${path} is not here`;
    }
    which(name) {
      zed.asked.push(name);
      return program;
    }
    shellEnv() {
      return shell;
    }
  }
  class Project {
    worktreeIds() {
      return BigUint64Array.of(7n);
    }
  }
  class Nothing {}
  const getSettings = (location, category, key) => {
    if (![undefined, 7n].includes(location?.worktreeId)) throw "no other worktree is expected";
    return JSON.stringify(settings[category]?.[key] ?? {});
  };
  const githubReleaseByTagName = (repository, tag) => {
    const archives = releases[`${repository} ${tag}`];
    if (!archives) throw `${repository} has no release ${tag}`;
    return { version: tag, assets: archives.map((path) => ({ name: basename(path), downloadUrl: path })) };
  };
  const downloadFile = (url, path, kind) => {
    zed.downloads += 1;
    const folder = join(directory, path);
    mkdirSync(folder);
    execFileSync("tar", [kind === "gzip-tar" ? "-xzf" : "-xf", url, "-C", folder]);
    if (zed.isOffline) throw "the connection was closed";
  };
  const sandbox = directory && { preopens: { ".": directory, [directory]: directory }, env: { PWD: directory } };
  const extension = await make({
    ...new WASIShim({ sandbox }).getImportObject(),
    "get-settings": { default: getSettings },
    worktree: { default: Worktree },
    project: { default: Project },
    "key-value-store": { default: Nothing },
    "zed:extension/platform": { currentPlatform: () => ["linux", "x8664"] },
    "zed:extension/github": { githubReleaseByTagName },
    "download-file": { default: downloadFile },
    "make-file-executable": { default: (path) => chmodSync(join(directory, path), 0o755) },
    "set-language-server-installation-status": { default: (name, status) => zed.statuses.push(`${name} ${status.tag}`) },
  });
  extension.initExtension();
  return Object.assign(zed, { extension, worktree: new Worktree(), project: new Project() });
}
