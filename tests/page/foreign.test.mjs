// What a page of another origin in the same browser can do with the page: nothing.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";

import { scenario } from "./harness.mjs";
import { SHOP } from "./project.mjs";

/** Serves an empty page on another port, and returns its origin. */
async function otherSite(keep) {
  const server = createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<!doctype html><title>other</title>"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  keep(server, (one) => one.close());
  return `http://127.0.0.1:${server.address().port}`;
}

/** Tries everything with the address of the page. Runs in the other page. */
async function attack({ origin, token }) {
  const body = JSON.stringify({ method: "sightline/createCheckpoint", params: { label: "foreign" } });
  const read = {};
  const attempt = async (name, work) => {
    try {
      read[name] = await work();
    } catch {
      read[name] = "blocked";
    }
  };
  const bearer = { Authorization: `Bearer ${token}` };
  const json = { "Content-Type": "application/json" };
  const text = async (path, options) => {
    const answer = await fetch(origin + path, options);
    return `${answer.type} ${await answer.text()}`;
  };
  await attempt("fetch", () => text("/rpc", { method: "POST", headers: { ...bearer, ...json }, body }));
  await attempt("without preflight", () => text("/rpc", { method: "POST", mode: "no-cors", body }));
  await attempt("files", () => text("/ui.js", {}));
  await attempt("events", () => text("/events", { headers: bearer }));
  await attempt("beacon", async () => String(navigator.sendBeacon(`${origin}/rpc`, body)));
  const loaded = (element, change) =>
    new Promise((resolve) => {
      element.onload = () => resolve("loaded");
      element.onerror = () => resolve("blocked");
      Object.assign(element, change);
      document.body.append(element);
    });
  await attempt("image", () => loaded(new Image(), { src: `${origin}/icon.svg` }));
  await attempt("script", () => loaded(document.createElement("script"), { src: `${origin}/ui.js` }));
  await attempt("frame", async () => {
    const frame = document.createElement("iframe");
    await loaded(frame, { src: `${origin}/#${token}` });
    return frame.contentDocument ? "readable" : "blocked";
  });
  await attempt("form", async () => {
    const frame = Object.assign(document.createElement("iframe"), { name: "target" });
    document.body.append(frame);
    const form = Object.assign(document.createElement("form"), { action: `${origin}/rpc`, method: "post", enctype: "text/plain", target: "target" });
    form.append(Object.assign(document.createElement("input"), { name: `${body.slice(0, -1)},"x":"`, value: '"}' }));
    document.body.append(form);
    form.submit();
    await new Promise((resolve) => (frame.onload = resolve));
    return frame.contentDocument ? "readable" : "blocked";
  });
  await attempt("socket", () => new Promise((resolve) => {
    const socket = new WebSocket(`${origin.replace("http", "ws")}/events`);
    socket.onopen = () => resolve("open");
    socket.onerror = () => resolve("blocked");
  }));
  return read;
}

scenario("a page of another origin reads nothing and has no effect", async ({ browser, project, start, keep }) => {
  const shop = await project(SHOP);
  const ui = await start(shop);
  const other = await otherSite(keep);
  const context = await browser.chromium.newContext();
  const page = await context.newPage();
  // Also with the token, which it cannot know.
  for (const origin of [ui.origin, ui.origin.replace("127.0.0.1", "localhost")]) {
    await page.goto(other);
    const read = await page.evaluate(attack, { origin, token: ui.token });
    const { beacon, ...others } = read;
    const expected = Object.fromEntries(Object.keys(others).map((name) => [name, "blocked"]));
    assert.deepEqual(others, expected, origin);
    assert.equal(beacon, "true");
  }
  // A window that it opens is refused, and it does not get hold of it.
  await page.goto(other);
  const [opened] = await Promise.all([
    context.waitForEvent("page"),
    page.evaluate((address) => void (window.opened = window.open(address)), ui.address),
  ]);
  await opened.waitForLoadState();
  assert.match(await opened.locator("body").innerText(), /not from the page of this address/);
  assert.ok(await page.evaluate(() => { try { return !window.opened.document; } catch { return true; } }));
  const { result } = await ui.rpc("sightline/listCheckpoints");
  assert.deepEqual(result.checkpoints, []);
});
