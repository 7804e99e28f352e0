// Sample client with the generated types. Compiled by types.test.mjs, never run.
// An `@ts-expect-error` fails the compilation if the types accept its mistake.

import { PROTOCOL_VERSION } from "../../clients/types/protocol.ts";
import type {
  ErrorData,
  Methods,
  Notifications,
  ServerNotifications,
  Settings,
} from "../../clients/types/protocol.ts";

interface Client {
  request<M extends keyof Methods>(method: M, params: Methods[M]["params"]): Promise<Methods[M]["result"]>;
  notify<N extends keyof Notifications>(method: N, params: Notifications[N]): void;
  on<N extends keyof ServerNotifications>(method: N, handle: (params: ServerNotifications[N]) => void): void;
}

export const settings: Settings = {
  notifications: true,
  environment: { ignoredFiles: "lock", sections: { files: { maxTokens: 2000 } } },
};

export async function block(client: Client): Promise<string> {
  if (PROTOCOL_VERSION !== 1) {
    throw new Error("unsupported protocol version");
  }
  client.notify("sightline/didChangeTabs", { tabs: [{ uri: "file:///a.rs", isActive: true }] });
  client.notify("textDocument/didFocus", {});
  client.on("sightline/didChangeContext", ({ revision }) => revision.toFixed());

  const verdict = await client.request("sightline/checkAccess", { paths: ["a.rs"], command: "cat a.rs" });
  const rule: string | undefined = verdict.paths[0]?.rule?.source;
  const details = await client.request("sightline/environmentDetails", {
    model: { id: "some-model", contextWindow: 200_000 },
    sections: ["openTabs", "mode"],
  });
  await client.request("sightline/environmentDetails", { model: "some-model" });
  return details.text + (rule ?? "");
}

export function isDenial(data: ErrorData): boolean {
  // @ts-expect-error: not a kind of error
  return data.kind === "accessDenied" || data.kind === "forbidden";
}

export function mistakes(client: Client): void {
  // @ts-expect-error: no such method
  client.request("sightline/checkAcess", {});
  // @ts-expect-error: `path` is required
  client.request("sightline/readFile", { startLine: 1 });
  // @ts-expect-error: a number is no path
  client.request("sightline/readFile", { path: 1 });
  // @ts-expect-error: absent is left out, never null
  client.request("sightline/readFile", { path: "a.rs", taskId: null });
  // @ts-expect-error: no such mode
  client.request("sightline/environmentDetails", { mode: "dream" });
  // @ts-expect-error: no such field
  client.request("sightline/listFiles", { recurse: true });
  // @ts-expect-error: a notification is no request
  client.request("sightline/didChangeTabs", { tabs: [] });
}

// @ts-expect-error: no such section
export const wrong: Settings = { environment: { sections: { tabs: {} } } };
