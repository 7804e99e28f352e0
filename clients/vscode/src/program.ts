/** Finds the server program. Does not use the API of VS Code. */

import * as fs from "node:fs";
import * as path from "node:path";

/** Places to search. */
export interface SearchPlaces {
  /** Setting `sightline.server.path`, empty if not set. */
  configured: string;
  /** Folder of the extension that can contain a server. */
  packaged: string;
  /** Folders of the `PATH`. */
  path: readonly string[];
  /** Home folder of the user. */
  home: string;
  /** Whether the program is for Windows. */
  isWindows: boolean;
}

/** A program, or the reason why there is none. */
export type Search = { program: string } | { program: undefined; reason: string; folders: string[] };

/**
 * Returns the program in the settings, otherwise the one in the extension,
 * otherwise the first on the `PATH` or in `~/.cargo/bin`.
 */
export function search({ configured, packaged, path: folders, home, isWindows }: SearchPlaces): Search {
  if (configured !== "") {
    const file = configured.startsWith("~/") ? path.join(home, configured.slice(2)) : configured;
    return path.isAbsolute(file) && isProgram(file)
      ? { program: file }
      : { program: undefined, reason: `${configured} (setting sightline.server.path) is not ${path.isAbsolute(file) ? "a program" : "an absolute path"}`, folders: [] };
  }
  const name = isWindows ? "sightline.exe" : "sightline";
  // A relative folder could contain a program of the workspace.
  const absolute = folders.filter((folder) => path.isAbsolute(folder));
  // The PATH of a desktop session often lacks folders of the shell.
  const searched = [packaged, ...new Set([...absolute, path.join(home, ".cargo", "bin")])];
  const program = searched.map((folder) => path.join(folder, name)).find(isProgram);
  return program !== undefined
    ? { program }
    : {
        program: undefined,
        reason: `there is no program “${name}” in the extension, on the PATH (${absolute.length === 1 ? "1 folder" : `${absolute.length} folders`}) or in ~/.cargo/bin`,
        folders: searched,
      };
}

function isProgram(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}
