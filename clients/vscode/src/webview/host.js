// The connection of the page in a webview to this extension: requests and their answers, which have the same id,
// and events. The page finds it as `sightlineHost`.
{
  const api = acquireVsCodeApi();
  const waiting = new Map();
  let ids = 0;
  addEventListener("message", ({ data }) => {
    waiting.get(data.id)?.(data);
    waiting.delete(data.id);
  });
  globalThis.sightlineHost = {
    send: (method, params) =>
      new Promise((resolve) => {
        const id = ++ids;
        waiting.set(id, resolve);
        api.postMessage({ id, method, params });
      }),
    on: (listener) => addEventListener("message", ({ data }) => data.event && listener(data.event)),
  };
}
