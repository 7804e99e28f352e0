/**
 * The settings of the server.
 *
 * The names of the settings come from the manifest, which is generated from the
 * schema of the server.
 */

import * as vscode from "vscode";

/** Settings of the extension, not of the server. */
const CLIENT_ONLY = ["sightline.server.", "sightline.trace."];

/** Settings that the server reads only at startup. */
const STARTUP_ONLY = ["sightline.storage.", "sightline.log."];

type Tree = { [key: string]: unknown };

let names: readonly string[] = [];

/** Reads the setting names from the manifest. Must be called first. */
export function readManifest(manifest: { contributes: { configuration: { properties: object }[] } }): void {
  const all = manifest.contributes.configuration.flatMap(({ properties }) => Object.keys(properties));
  names = all.filter((name) => !CLIENT_ONLY.some((prefix) => name.startsWith(prefix)));
}

/** Returns the settings of the server that the user has set. */
export function settings(): Tree {
  return tree(names);
}

/** Returns the settings to send with `initialize`. The server requests the others. */
export function startupSettings(): Tree {
  return tree(names.filter((name) => STARTUP_ONLY.some((prefix) => name.startsWith(prefix))));
}

function tree(wanted: readonly string[]): Tree {
  const configuration = vscode.workspace.getConfiguration();
  // The tree view and the status bar need notifications.
  const result: Tree = { notifications: true };
  for (const name of wanted) {
    // Defaults would precede the user's configuration file.
    if (configuration.inspect(name)?.globalValue === undefined) {
      continue;
    }
    const value = configuration.get(name);
    // The manifest uses null for "not set".
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
