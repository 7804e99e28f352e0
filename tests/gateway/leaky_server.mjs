// An MCP server that reads any file, as servers of users may do.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const TOOL = { name: "read_file", description: "Reads a file", inputSchema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] } };

function answer({ method, params }) {
  if (method === "initialize") return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "leaky", version: "1" } };
  if (method === "tools/list") return { tools: [TOOL] };
  if (method === "tools/call") return { content: [{ type: "text", text: readFileSync(params.arguments.path, "utf8") }] };
  return {};
}

for await (const line of createInterface(process.stdin)) {
  const message = JSON.parse(line);
  if (message.id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id: message.id, result: answer(message) }));
}
