// Ordinary requests and sources are not changed. SIGHTLINE_CORPUS names a folder with more sources, such as
// ~/.cargo/registry/src: 50 MB of them are sent.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Gateway, MISSING, Provider } from "./gateway.mjs";

const REPOSITORY = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const RECORDED = join(process.env.SIGHTLINE_FIXTURES ?? join(REPOSITORY, "../shared/fixtures"), "gateway");
/** Size of the texts of a request, in characters. */
const SIZE = 1_000_000;
const CORPUS = process.env.SIGHTLINE_CORPUS;
/** Size of the texts of the corpus, in characters. */
const CORPUS_SIZE = 50_000_000;
const SOURCE = /\.(rs|py|c|h|mjs|ts|js|lua|md|toml|json|ya?ml|sh)$/;

describe("what is not hidden", { skip: MISSING }, () => {
  let folder, provider, gateway;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "sightline-gateway-"));
    const project = join(folder, "project");
    mkdirSync(project);
    writeFileSync(join(project, ".env"), "DEBUG=true\nPORT=3000\nAPI_KEY=q7Zp-live-83Vt5WbKd\nDATABASE_URL=postgres://app:kR9vQ2mXw7Lp@localhost:5432/app\n");
    writeFileSync(join(project, "secrets.ts"), "import { readFileSync } from \"node:fs\";\n\nexport function load(path: string): string {\n  try {\n    return readFileSync(path, \"utf8\");\n  } catch (error) {\n    throw error;\n  }\n}\n");
    writeFileSync(join(project, "private.pem"), `-----BEGIN PRIVATE KEY-----\n${"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n".repeat(4)}-----END PRIVATE KEY-----\n`);
    writeFileSync(join(project, "keys.rs"), "use std::collections::HashMap;\n\npub fn keys() -> HashMap<&'static str, u64> {\n    HashMap::from([(\"master\", 0x7f3a_91c4_d2e8_05b6)])\n}\n");
    writeFileSync(join(project, "main.rs"), "use std::collections::HashMap;\n");
    // Lines that other files have too.
    writeFileSync(join(project, "shared.ts"), 'import { readFileSync } from "node:fs";\n  } catch (error) {\n');
    writeFileSync(join(project, ".clineignore"), "secrets.ts\nkeys.rs\n");
    execFileSync("git", ["init", "-q"], { cwd: project });
    provider = await Provider.start();
    gateway = await Gateway.start(["--root", project, "--upstream", `own=${provider.url}`], { folder });
  });
  after(async () => {
    await gateway?.close();
    provider?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function assertUnchanged(path, body, what) {
    provider.requests = [];
    const { status, headers, text } = await gateway.send("own", path, { body });
    assert.equal(status, 200, text);
    assert.equal(headers["x-sightline-redacted"], undefined, what);
    assert.equal(provider.requests[0].bytes.toString(), body, what);
  }

  test("recorded sessions of seven agents", { skip: existsSync(RECORDED) ? false : "there are no recordings" }, async () => {
    let count = 0;
    for (const name of readdirSync(RECORDED)) {
      for (const line of readFileSync(join(RECORDED, name), "utf8").trimEnd().split("\n")) {
        const { method, path, body } = JSON.parse(line);
        // One session reads a secret.
        if (method !== "POST" || !body || line.includes("TOPSECRET")) continue;
        await assertUnchanged(path.replace(/^\/k\/S\/[a-z]+/, ""), JSON.stringify(body), `${name}: ${line.slice(0, 200)}`);
        count += 1;
      }
    }
    assert.ok(count > 40, `${count} requests`);
  });

  test("sources of this repository", async () => {
    const files = execFileSync("git", ["ls-files", "-z"], { cwd: REPOSITORY, encoding: "utf8" }).split("\0");
    // Tests contain diffs of denied files, which are hidden.
    const sources = files.filter((name) => /\.(rs|mjs|ts|js|lua|md|toml|json)$/.test(name) && !name.includes("tests/")).map((name) => join(REPOSITORY, name)).filter(existsSync);
    await send(sources, Infinity);
  });

  test("50 MB of other sources", { skip: CORPUS ? false : "SIGHTLINE_CORPUS names no folder" }, async (context) => {
    const files = readdirSync(CORPUS, { recursive: true, withFileTypes: true });
    const sources = files.filter((entry) => entry.isFile() && SOURCE.test(entry.name)).map((entry) => join(entry.parentPath, entry.name));
    const { size, count } = await send(sources, CORPUS_SIZE);
    context.diagnostic(`${size} characters of ${count} files, nothing hidden`);
    assert.ok(size >= CORPUS_SIZE, `${size} characters`);
  });

  /** Sends the texts of files up to a size. */
  async function send(files, limit) {
    let [texts, waiting, size, count] = [[], 0, 0, 0];
    const flush = async () => {
      await assertUnchanged("/v1/messages", JSON.stringify({ messages: [{ role: "user", content: texts.map((text) => ({ type: "text", text })) }] }), texts.length);
      [texts, waiting] = [[], 0];
    };
    for (const file of files) {
      if (size >= limit) break;
      const text = readFileSync(file, "utf8");
      texts.push(text);
      waiting += text.length;
      size += text.length;
      count += 1;
      if (waiting > SIZE) await flush();
    }
    await flush();
    return { size, count };
  }
});
