// Tests that the schemas are valid for a strict draft 7 validator, accept the
// messages of clients, and reject invalid ones.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { Ajv } from "ajv";

const repository = join(import.meta.dirname, "../..");
const readJson = (path) => JSON.parse(readFileSync(join(repository, path), "utf8"));

const ajv = new Ajv({ strict: true, allErrors: true });
ajv.addSchema(readJson("schemas/protocol.schema.json"), "protocol.schema.json");
ajv.addSchema(readJson("schemas/settings.schema.json"), "settings.schema.json");
const methods = readJson("schemas/methods.json");

function assertValid(schema, value) {
  assert.ok(ajv.validate(schema, value), `${JSON.stringify(schema)}: ${ajv.errorsText()}`);
}

function assertInvalid(schema, value) {
  assert.ok(!ajv.validate(schema, value), `${JSON.stringify(schema)} accepts ${JSON.stringify(value)}`);
}

/** Yields the schema and value of every sample message; of a list, those of each item. */
function* messages() {
  for (const { schema, message } of whole()) {
    const { items } = ajv.getSchema(schema.$ref).schema;
    if (!items) yield { schema, message };
    else for (const item of message) yield { schema: { $ref: `protocol.schema.json${items.$ref}` }, message: item };
  }
}

/** Yields the schema and value of every sample message. */
function* whole() {
  for (const row of methods) {
    const sample = readJson(`tests/transcripts/samples/${row.method.split("/")[1]}.json`);
    yield { schema: row.params, message: sample.params };
    if (row.result) {
      yield { schema: row.result, message: sample.result };
    }
  }
}

test("samples are valid", () => {
  for (const { schema, message } of whole()) {
    assertValid(schema, message);
  }
});

test("worked examples are valid", () => {
  for (const row of methods) {
    const example = readJson(`docs/examples/${row.method.split("/")[1]}.json`);
    assertValid(row.params, example.params);
    if (row.result) {
      assertValid(row.result, example.result);
    }
    if (example.refused) {
      assertValid({ $ref: "protocol.schema.json#/definitions/ErrorData" }, example.refused.error.data);
    }
  }
});

test("fields are never null", () => {
  for (const { schema, message } of messages()) {
    const { properties } = ajv.getSchema(schema.$ref).schema;
    for (const field of Object.keys(message)) {
      // The error of a provider may be any value.
      if (schema.$ref.endsWith("/ClassifyErrorParams") && field === "error") continue;
      assert.ok(field in properties, `${schema.$ref} has no ${field}`);
      assertInvalid(schema, { ...message, [field]: null });
    }
  }
});

test("only required fields are required", () => {
  for (const { schema, message } of messages()) {
    const { required = [], properties } = ajv.getSchema(schema.$ref).schema;
    for (const field of Object.keys(properties)) {
      const { [field]: _, ...without } = message;
      (required.includes(field) ? assertInvalid : assertValid)(schema, without);
    }
  }
});

test("unknown fields are accepted", () => {
  for (const { schema, message } of messages()) {
    assertValid(schema, { ...message, addedLater: 1 });
  }
});

test("error data has a schema", () => {
  const schema = { $ref: "protocol.schema.json#/definitions/ErrorData" };
  const rule = { source: ".clineignore", line: 3, pattern: "*.pem" };
  assertValid(schema, { kind: "accessDenied", path: "key.pem", rule });
  assertInvalid(schema, { kind: "forbidden" });
});

test("invalid settings are rejected", () => {
  const schema = { $ref: "settings.schema.json" };
  assertValid(schema, readJson("tests/transcripts/settings.json"));
  assertValid(schema, {});
  for (const wrong of [
    { notification: true },
    { notifications: "yes" },
    { environment: { ignoredFiles: "show" } },
    { environment: { sections: { tabs: {} } } },
    { environment: { sections: { files: { maxTokens: -1 } } } },
    { checkpoints: { exclude: "node_modules" } },
  ]) {
    assertInvalid(schema, wrong);
  }
});
