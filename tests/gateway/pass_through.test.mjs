// Requests and responses pass unchanged, and only those of the user.

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { createServer } from "node:https";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { Gateway, MISSING, Provider, send, zstd } from "./gateway.mjs";

const MESSAGES = "/v1/messages?beta=true";
const BODY = `{ "model" : "m",\n "messages":[{"content":"h\\u00e9 \\/ \\ud83d","role":"user"}], "x": 1.50e+3, "x": null }`;

describe("pass-through", { skip: MISSING }, () => {
  let provider, gateway;
  before(async () => {
    provider = await Provider.start();
    gateway = await Gateway.start(["--upstream", `anthropic=${provider.url}`, "--upstream", `own=${provider.url}/base/`]);
    assert.match(gateway.url, /^http:\/\/127\.0\.0\.1:\d+\/k\/[0-9a-f]{32}$/, gateway.output);
  });
  after(async () => {
    await gateway.close();
    provider.close();
  });

  /** Sends a request, and returns the response and what the provider got. */
  async function through(upstream, path, options, answer = (_, response) => response.end("{}")) {
    provider.requests = [];
    provider.answer = answer;
    const response = await gateway.send(upstream, path, options);
    return { response, received: provider.requests[0], count: provider.requests.length };
  }

  test("bytes, path and unknown headers of a request", async () => {
    const headers = { "x-api-key": "sk-1", authorization: "Bearer t", "anthropic-beta": "a,b", "x-unknown": "1", "accept-encoding": "gzip", connection: "x-hop", "x-hop": "1", te: "trailers" };
    const { received } = await through("own", MESSAGES, { headers, body: BODY });
    assert.equal(received.url, `/base${MESSAGES}`);
    assert.equal(received.bytes.toString(), BODY);
    assert.equal(received.headers.host, new URL(provider.url).host);
    for (const name of ["x-api-key", "authorization", "anthropic-beta", "x-unknown"]) assert.equal(received.headers[name], headers[name], name);
    assert.equal(received.headers["accept-encoding"], "identity");
    for (const name of ["x-hop", "te"]) assert.equal(received.headers[name], undefined, name);
  });

  test("status, bytes and unknown headers of a response", async () => {
    const { response } = await through("anthropic", MESSAGES, { body: "{}" }, (_, response) => {
      response.writeHead(529, { "content-type": "text/x", "request-id": "r1", "anthropic-ratelimit-x": "5", "retry-after": "3600", connection: "x-hop", "x-hop": "1" });
      response.end("overloaded \xff");
    });
    assert.equal(response.status, 529);
    assert.equal(response.text, "overloaded \xff");
    assert.equal(response.headers["request-id"], "r1");
    assert.equal(response.headers["anthropic-ratelimit-x"], "5");
    assert.equal(response.headers["retry-after"], "3600");
    assert.equal(response.headers["x-hop"], undefined);
  });

  test("requests without a body pass on any path", async () => {
    for (const method of ["GET", "HEAD", "DELETE"]) {
      const { response, received } = await through("anthropic", "/v1/models?limit=2", { method });
      assert.equal(response.status, 200);
      assert.deepEqual([received.method, received.url], [method, "/v1/models?limit=2"]);
    }
  });

  test("a stream is passed on in the chunks of the provider", async () => {
    let next;
    const { response } = await through(
      "anthropic",
      MESSAGES,
      { body: "{}", onChunk: () => next?.() },
      async (_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        // Each event is written when the agent has the one before.
        for (let event = 0; event < 20; event += 1) {
          const seen = new Promise((resolve) => (next = resolve));
          response.write(`data: ${event}\n\n`);
          await seen;
        }
        response.end();
      },
    );
    assert.equal(response.text.split("\n\n").length, 21);
  });

  test("a stream that breaks off does so towards the agent", async () => {
    const broken = through("anthropic", MESSAGES, { body: "{}" }, (_, response) => {
      response.write("data: 1\n\n");
      setTimeout(() => response.destroy(), 50);
    });
    await assert.rejects(broken, /aborted|hang up|ECONNRESET/);
  });

  test("a request of an agent that leaves is dropped", async () => {
    const left = await new Promise((resolve, reject) => {
      const sent = through("anthropic", MESSAGES, { body: "{}", onChunk: (_, sent) => sent.destroy() }, (_, response) => {
        response.on("close", () => resolve(true));
        response.write("data: 1\n\n");
      });
      sent.then(() => reject(new Error("it ended")), () => {});
    });
    assert.ok(left);
    const before = await new Promise((resolve) => {
      let agent;
      const sent = through("anthropic", MESSAGES, { body: "{}", onSent: (sent) => (agent = sent) }, (_, response) => {
        response.on("close", () => resolve(true));
        agent.destroy();
      });
      sent.catch(() => {});
    });
    assert.ok(before);
  });

  test("compressed bodies pass as they are", async () => {
    for (const [encoding, body] of [["gzip", gzipSync(BODY)], ["zstd", zstd(BODY)]]) {
      const { response, received } = await through("anthropic", MESSAGES, { headers: { "content-encoding": encoding }, body });
      assert.equal(response.status, 200, response.text);
      assert.ok(received.bytes.equals(body));
      assert.equal(received.headers["content-encoding"], encoding);
    }
  });

  test("a body that cannot be checked is not sent", async () => {
    const large = Buffer.alloc(64 * 1024 * 1024, "a");
    const quoted = Buffer.concat([Buffer.from('{"a":"'), large, Buffer.from('"}')]);
    const cases = [
      [400, MESSAGES, {}, '{"a": }'],
      [400, MESSAGES, {}, '{"a": 1} x'],
      [400, MESSAGES, {}, Buffer.from([0x22, 0xff, 0x22])],
      [400, MESSAGES, { "content-encoding": "gzip" }, "no gzip"],
      [400, MESSAGES, { "content-encoding": "gzip" }, gzipSync(BODY).subarray(0, 40)],
      [400, MESSAGES, { "content-encoding": "zstd" }, "no zstd"],
      [400, MESSAGES, { "content-encoding": "zstd" }, zstd(BODY).subarray(0, 40)],
      [400, MESSAGES, { "content-encoding": "zstd" }, zstd("{")],
      [413, MESSAGES, { "content-encoding": "gzip" }, gzipSync(quoted)],
      [413, MESSAGES, {}, quoted],
      [415, MESSAGES, { "content-encoding": "br" }, BODY],
      [415, MESSAGES, { "content-encoding": "gzip, gzip" }, gzipSync(gzipSync(BODY))],
      [415, MESSAGES, { "content-type": "text/plain" }, BODY],
      [415, MESSAGES, { "content-type": "multipart/form-data; boundary=x" }, BODY],
      [415, "/v1/files", {}, BODY],
    ];
    for (const [status, path, headers, body] of cases) {
      const { response, count } = await through("anthropic", path, { headers, body });
      assert.equal(response.status, status, JSON.stringify([path, headers]));
      assert.equal(count, 0);
      const { error } = response.json();
      assert.equal(error.type, "sightline_gateway");
      assert.equal(response.headers["x-should-retry"], "false");
    }
  });

  test("64 MiB pass", async () => {
    const body = Buffer.concat([Buffer.from('{"a":"'), Buffer.alloc(64 * 1024 * 1024 - 8, "a"), Buffer.from('"}')]);
    const { response, received } = await through("anthropic", MESSAGES, { body });
    assert.equal(response.status, 200);
    assert.equal(received.bytes.length, body.length);
  });

  test("64 requests run at once, and the next one waits", async () => {
    const waiting = [];
    provider.requests = [];
    const sent = Array.from({ length: 65 }, () => undefined);
    const full = new Promise((resolve) => {
      provider.answer = (_, response) => {
        waiting.push(response);
        if (waiting.length === 64) resolve();
      };
    });
    sent.forEach((_, at) => (sent[at] = gateway.send("anthropic", MESSAGES, { body: "{}" })));
    await full;
    // The last one would come by now.
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.equal(provider.requests.length, 64);
    provider.answer = (_, response) => response.end("{}");
    waiting.forEach((response) => response.end("{}"));
    const responses = await Promise.all(sent);
    assert.ok(responses.every(({ status }) => status === 200));
    assert.equal(provider.requests.length, 65);
  });

  test("errors have the shape of the API", async () => {
    const at = async (path) => (await through("anthropic", path, { headers: { "content-encoding": "br" }, body: "{}" })).response.json();
    assert.equal((await at("/v1/messages")).type, "error");
    assert.equal((await at("/v1/responses")).error.code, null);
    assert.equal((await at("/v1/chat/completions")).error.param, null);
    const { error } = await at("/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse");
    assert.deepEqual([error.code, error.status], [415, "INVALID_ARGUMENT"]);
  });

  test("others are refused", async () => {
    const { port } = new URL(gateway.url);
    const secret = gateway.url.split("/k/")[1];
    const ask = (path, headers = {}, options = {}) => send(`http://127.0.0.1:${port}${path}`, { method: "GET", headers, ...options });
    provider.requests = [];
    const own = `/k/${secret}/anthropic/v1/models`;
    const wrong = own.replace(secret, secret.replace(/./, (digit) => (digit === "0" ? "1" : "0")));
    for (const path of ["/", "/k/", "/anthropic/v1/models", wrong, own.replace(secret, secret.slice(1)), own.replace(secret, "")]) {
      assert.equal((await ask(path)).status, 401, path);
    }
    assert.equal((await ask("/mcp/readonly", {}, { method: "POST", body: "{}" })).status, 404);
    for (const headers of [{ host: "example.com" }, { host: `127.0.0.1:1` }, { host: "127.0.0.1" }, { origin: `http://127.0.0.1:${port}` }, { origin: "null" }]) {
      assert.equal((await ask(own, headers)).status, 403, JSON.stringify(headers));
    }
    assert.equal((await ask(`/k/${secret}/unknown/v1/models`)).status, 404);
    for (const path of ["/../x", "/a/%2e%2E/x", "/./x"]) {
      const line = `GET /k/${secret}/anthropic${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`;
      assert.match(await raw(port, line), /^HTTP\/1.1 400/, path);
    }
    assert.equal(provider.requests.length, 0);
    assert.equal((await ask(own)).status, 200);
    assert.equal((await ask(own, { host: `localhost:${port}` })).status, 200);
  });

  test("another user of the machine is refused, even with the secret", { skip: process.getuid() === 0 ? false : "needs root" }, async () => {
    // Node may exit before it reports a connection that was closed at once.
    const ask = `let answer = "refused";
      process.on("exit", () => console.log(answer));
      fetch(${JSON.stringify(`${gateway.url}/anthropic/v1/models`)}).then(({ status }) => (answer = status), () => {})`;
    const as = async (uid) => (await promisify(execFile)(process.execPath, ["-e", ask], { uid, cwd: "/" })).stdout.trim();
    assert.equal(await as(0), "200");
    assert.equal(await as(65534), "refused");
  });

  test("a WebSocket is refused with 426", async () => {
    const { port, pathname } = new URL(gateway.url);
    const head = `GET ${pathname}/anthropic/v1/responses HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n`;
    assert.match(await raw(port, head, /426/), /^HTTP\/1.1 426/);
  });

  test("redirects are not followed, and not passed on", async () => {
    const other = await Provider.start();
    const { response } = await through("anthropic", MESSAGES, { headers: { "x-api-key": "sk-1" }, body: "{}" }, (_, response) => {
      response.writeHead(307, { location: `${other.url}/v1/messages` });
      response.end();
    });
    assert.equal(response.status, 400);
    assert.equal(response.headers.location, undefined);
    assert.equal(other.requests.length, 0);
    other.close();
  });

  test("a provider that cannot be reached is 502", async () => {
    const gone = await Provider.start();
    const url = gone.url;
    gone.close();
    const other = await Gateway.start(["--upstream", `anthropic=${url}`]);
    const response = await other.send("anthropic", MESSAGES, { body: "{}" });
    assert.equal(response.status, 502);
    assert.match(response.json().error.message, /cannot reach 127\.0\.0\.1/);
    await other.close();
  });

  test("the secret is kept, for the user only, and nothing else is", async () => {
    const body = { messages: [{ content: "PROMPT-1" }] };
    await through("anthropic", MESSAGES, { headers: { "x-api-key": "sk-CREDENTIAL", cookie: "c=COOKIE" }, body });
    await through("anthropic", MESSAGES, { headers: { "x-api-key": "sk-CREDENTIAL", "content-encoding": "br" }, body });
    const folder = join(gateway.folder, "data/gateway");
    assert.equal(statSync(join(folder, "secret")).mode & 0o777, 0o600);
    assert.equal(statSync(folder).mode & 0o077, 0);
    const files = readdirSync(join(gateway.folder, "data"), { recursive: true, withFileTypes: true });
    const stored = files.filter((entry) => entry.isFile()).map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"));
    for (const text of [...stored, gateway.output]) assert.doesNotMatch(text, /CREDENTIAL|COOKIE|PROMPT-1/);
    const again = await Gateway.start([], { folder: gateway.folder });
    assert.equal(again.url.split("/k/")[1], gateway.url.split("/k/")[1]);
    await again.kill();
  });

  test("an upstream without TLS must be on loopback", async () => {
    for (const url of ["http://example.com", "ftp://127.0.0.1", "https://user:key@example.com", "nothing"]) {
      const { exited, url: address, output } = await Gateway.start(["--upstream", `anthropic=${url}`]);
      assert.equal(await exited, 3, output);
      assert.equal(address, undefined);
    }
  });

  test("a provider with TLS is reached, if the system trusts it", async () => {
    const folder = join(gateway.folder, "tls");
    const [key, certificate] = ["key.pem", "certificate.pem"].map((name) => join(folder, name));
    execFileSync("mkdir", ["-p", folder]);
    execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"], { stdio: "ignore" });
    const server = createServer({ key: readFileSync(key), cert: readFileSync(certificate) }, (_, response) => response.end("secure"));
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    server.unref();
    const upstream = ["--upstream", `anthropic=https://localhost:${server.address().port}`];
    for (const [trusted, expected] of [[certificate, 200], ["/etc/ssl/certs/ca-certificates.crt", 502]]) {
      const other = await Gateway.start(upstream, { env: { SSL_CERT_FILE: trusted } });
      const response = await other.send("anthropic", MESSAGES, { body: "{}" });
      await other.close();
      assert.equal(response.status, expected, response.text);
    }
  });
});

/** Sends bytes, and returns the answer up to `end`, or all of it. */
function raw(port, bytes, end = /$^/) {
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (data) => {
      answer += data;
      if (end.test(answer)) socket.destroy();
    });
    socket.on("close", () => resolve(answer));
  });
}
