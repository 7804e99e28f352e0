/**
 * The server's settings, as the user set them.
 *
 * Which settings there are is read from the manifest, whose list is generated
 * from the server's schema; so none is named here.
 */

import * as vscode from "vscode";

/** Settings of this extension, not of the server. */
const CLIENT_ONLY = ["sightline.server.", "sightline.trace."];

/** Settings the server reads at its start, and only then. */
const AT_START = ["sightline.storage.", "sightline.log."];

type Tree = { [key: string]: unknown };

let names: readonly string[] = [];

/** Tells which settings there are. Call it before anything else. */
export function readManifest(manifest: { contributes: { configuration: { properties: object } } }): void {
  names = Object.keys(manifest.contributes.configuration.properties).filter(
    (name) => !CLIENT_ONLY.some((prefix) => name.startsWith(prefix)),
  );
}

/** All settings of the server. */
export function settings(): Tree {
  return tree(names);
}

/** The settings that go along with `initialize`; the server asks for the others. */
export function atStart(): Tree {
  return tree(names.filter((name) => AT_START.some((prefix) => name.startsWith(prefix))));
}

function tree(wanted: readonly string[]): Tree {
  const configuration = vscode.workspace.getConfiguration();
  // The tree view and the status bar live on them.
  const result: Tree = { notifications: true };
  for (const name of wanted) {
    const value = configuration.get(name);
    // Null is how the manifest says "not set".
    if (value !== null && value !== undefined) {
      place(result, name.split(".").slice(1), value);
    }
  }
  return result;
}

function place(into: Tree, keys: readonly string[], value: unknown): void {
  const [key, ...rest] = keys;
  if (key === undefined) {
    return;
  }
  if (rest.length === 0) {
    into[key] = value;
    return;
  }
  const branch = (into[key] ??= {}) as Tree;
  place(branch, rest, value);
}
