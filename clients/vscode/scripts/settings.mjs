// Writes the settings of `schemas/settings.schema.json` to
// `contributes.configuration` in `package.json`. `--check` only checks whether
// they are up to date.
//
// The schema is a tree, but VS Code uses a flat list of dotted names. Objects
// with fixed fields become prefixes; everything else becomes a setting.

import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const SCHEMA = new URL("../../../schemas/settings.schema.json", import.meta.url);
const MANIFEST = new URL("../package.json", import.meta.url);

/** The groups of the settings editor: title, and first parts of names. Other settings mean nothing in VS Code, or are set by the extension. */
const GROUPS = [
  ["Agents", ["agents", "bridges"]],
  ["Access", ["access"]],
  ["Checkpoints", ["checkpoints"]],
  ["Context", ["environment"]],
  ["Diagnostics", ["diagnostics"]],
  ["Server", ["server", "trace", "storage", "log"]],
];

/** Settings of the extension, which are not sent to the server. */
const CLIENT = {
  "sightline.server.path": {
    type: "string",
    default: "",
    scope: "machine",
    markdownDescription: "Path of the `sightline` program. Defaults to the one in the extension, otherwise to the one on the `PATH`.",
  },
  "sightline.trace.server": {
    type: "string",
    enum: ["off", "messages", "verbose"],
    default: "off",
    scope: "window",
    description: "Log messages between VS Code and the server to the output channel.",
  },
};

/**
 * Returns `contributes.configuration` for a schema.
 *
 * @param {object} schema the settings schema of the server
 * @returns {object[]}
 */
export function configuration(schema) {
  const ofServer = flat(schema, schema, "").map(([name, setting]) => [`sightline.${name}`, contribution(setting, schema)]);
  const all = [...Object.entries(CLIENT), ...ofServer];
  return GROUPS.map(([title, parts], order) => {
    const properties = all.filter(([name]) => parts.includes(name.split(".")[1]));
    return { title, order, properties: Object.fromEntries(properties) };
  });
}

/** Returns pairs of dotted name and schema, sorted by name. */
function flat(node, schema, prefix) {
  return Object.keys(node.properties)
    .sort()
    .flatMap((key) => {
      const name = prefix + key;
      const property = resolved(node.properties[key], schema);
      return property.properties ? flat(property, schema, `${name}.`) : [[name, property]];
    });
}

/** Resolves a reference. Keywords of `property` take precedence. */
function resolved(property, schema) {
  const reference = property.$ref ?? property.allOf?.[0].$ref;
  if (!reference) {
    return property;
  }
  const { $ref: _ref, allOf: _allOf, ...own } = property;
  const target = schema.definitions[reference.replace("#/definitions/", "")];
  return { ...resolved(target, schema), ...own };
}

function contribution(property, schema) {
  const { description, default: value, ...shape } = plain(property, schema);
  // `.vscode/settings.json` comes with a repository, which must not change what agents see, what is
  // deleted or what prompts contain. `.sightline.toml` is for what a project may decide.
  const result = { ...shape, scope: "machine" };
  if (value === undefined && shape.type !== "object") {
    // VS Code would use a default such as 0; null means "not set".
    result.type = [shape.type, "null"];
    result.default = null;
  } else {
    result.default = value ?? {};
  }
  result.markdownDescription = description;
  return result;
}

/** Returns `property` without references, which settings do not support. */
function plain(property, schema) {
  const { oneOf, properties, propertyNames, additionalProperties, items, ...rest } = resolved(property, schema);
  const result = { ...rest };
  if (result.description) {
    result.description = result.description.replaceAll("\n", " ");
  }
  if (oneOf) {
    result.type = "string";
    result.enum = oneOf.map((one) => one.const);
    result.enumDescriptions = oneOf.map((one) => one.description);
  }
  if (properties) {
    result.properties = Object.fromEntries(
      Object.entries(properties).map(([key, value]) => [key, plain(value, schema)]),
    );
  }
  if (propertyNames) {
    result.propertyNames = { enum: plain(propertyNames, schema).enum };
  }
  if (typeof additionalProperties === "object") {
    result.additionalProperties = plain(additionalProperties, schema);
  } else if (additionalProperties !== undefined) {
    result.additionalProperties = additionalProperties;
  }
  if (items) {
    result.items = plain(items, schema);
  }
  return result;
}

/** Returns the current manifest and the expected one. */
export async function manifests() {
  const schema = JSON.parse(await readFile(SCHEMA, "utf8"));
  const written = await readFile(MANIFEST, "utf8");
  const manifest = JSON.parse(written);
  manifest.contributes = { ...manifest.contributes, configuration: configuration(schema) };
  return { written, wanted: `${JSON.stringify(manifest, null, 2)}\n` };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { written, wanted } = await manifests();
  if (written === wanted) {
    console.log("settings: up to date");
  } else if (process.argv.includes("--check")) {
    console.error("settings: package.json is out of date; run `npm run settings`");
    process.exitCode = 1;
  } else {
    await writeFile(MANIFEST, wanted);
    console.log("settings: package.json updated");
  }
}
