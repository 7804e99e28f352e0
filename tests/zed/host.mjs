// Simulates Zed: loads the component of the extension and implements its imports.

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
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
 * `settings` is the object `lsp` of the Zed settings, `program` the program found on
 * the PATH, `shell` the environment of the project shell.
 */
export async function start(make, { settings = {}, program, shell = [] } = {}) {
  const asked = [];
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
      asked.push(name);
      return program;
    }
    shellEnv() {
      return shell;
    }
  }
  class Nothing {}
  const getSettings = (location, category, key) => {
    if (location?.worktreeId !== 7n || category !== "lsp") {
      throw `no ${category} is expected to be asked for`;
    }
    return JSON.stringify(settings[key] ?? {});
  };
  const extension = await make({
    ...new WASIShim().getImportObject(),
    "get-settings": { default: getSettings },
    worktree: { default: Worktree },
    project: { default: Nothing },
    "key-value-store": { default: Nothing },
  });
  extension.initExtension();
  return { extension, worktree: new Worktree(), asked };
}
