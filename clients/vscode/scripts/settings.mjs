// Writes the settings of `schemas/settings.schema.json` into `package.json`,
// as `contributes.configuration`. `--check` only tells whether they are there.
//
// The schema is a tree; VS Code shows a flat list of dotted names. So objects
// with fixed fields become prefixes, and all else becomes a setting.

import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const SCHEMA = new URL("../../../schemas/settings.schema.json", import.meta.url);
const MANIFEST = new URL("../package.json", import.meta.url);

/** Settings this extension decides itself. */
const OURS = new Set(["notifications"]);

/**
 * Settings that a folder must not bring along in `.vscode/settings.json`: where
 * files are written, and what an agent may read.
 */
const MACHINE = new Set(["storage.path", "log.file", "access.outsideWorkspace", "access.recursiveReaders"]);

/** Settings of the extension; the server never sees them. */
const CLIENT = {
  "sightline.server.path": {
    type: "string",
    default: "",
    scope: "machine",
    markdownDescription: "The `sightline` program. When empty, the one on the search path is used.",
  },
  "sightline.trace.server": {
    type: "string",
    enum: ["off", "messages", "verbose"],
    default: "off",
    scope: "window",
    description: "Write the messages between VS Code and the server to the output channel.",
  },
};

/**
 * `contributes.configuration` for a schema.
 *
 * @param {object} schema the schema of the server's settings
 * @returns {object}
 */
export function configuration(schema) {
  const properties = { ...CLIENT };
  for (const [name, setting] of flat(schema, schema, "")) {
    if (!OURS.has(name)) {
      properties[`sightline.${name}`] = contribution(name, setting, schema);
    }
  }
  return { title: "Sightline", properties };
}

/** Pairs of dotted name and schema, in order of name. */
function flat(node, schema, prefix) {
  return Object.keys(node.properties)
    .sort()
    .flatMap((key) => {
      const name = prefix + key;
      const property = resolved(node.properties[key], schema);
      return property.properties ? flat(property, schema, `${name}.`) : [[name, property]];
    });
}

/** `property` with what it refers to; its own words come first. */
function resolved(property, schema) {
  const reference = property.$ref ?? property.allOf?.[0].$ref;
  if (!reference) {
    return property;
  }
  const { $ref: _ref, allOf: _allOf, ...own } = property;
  const target = schema.definitions[reference.replace("#/definitions/", "")];
  return { ...resolved(target, schema), ...own };
}

function contribution(name, property, schema) {
  const { description, default: value, ...shape } = plain(property, schema);
  const result = { ...shape, scope: MACHINE.has(name) ? "machine" : "window" };
  if (value === undefined && shape.type !== "object") {
    // VS Code would make up a value, such as 0; null is "not set".
    result.type = [shape.type, "null"];
    result.default = null;
  } else {
    result.default = value ?? {};
  }
  result.markdownDescription = description;
  return result;
}

/** `property` without references, since a setting cannot refer to anything. */
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

/** The manifest as it is, and as it should be. */
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
    console.error("settings: package.json is not what the schema says; run `npm run settings`");
    process.exitCode = 1;
  } else {
    await writeFile(MANIFEST, wanted);
    console.log("settings: package.json rewritten");
  }
}
