/** Requests that only `sightline ui` answers. In an editor they are missing. */

import type { AccessRule } from "../../types/protocol";

/** A workspace folder. */
export interface PageRoot {
  name: string;
  path: string;
  uri: string;
}

/** The state of `sightline ui`. */
export interface PageState {
  version: string;
  readOnly: boolean;
  roots: PageRoot[];
  /** Whether an editor runs a server for the workspace. */
  server: boolean;
  home?: string;
}

/** One check of `sightline doctor`. */
export interface Finding {
  what: string;
  found: string;
  ok: boolean;
  remedy: string;
}

/** An agent, from `sightline agents status`. */
export interface AgentStatus {
  agent: string;
  title: string;
  /** Whether the user has run it. */
  used: boolean;
  onPath: boolean;
  outdated: boolean;
  /** Parts that are installed for the user and for the project. */
  user: string[];
  project: string[];
  /** Codex only: whether it runs our hooks. */
  trusted?: boolean | null;
  problems: { what: string; remedy: string }[];
}

/** What a hook did with a denied file, from `sightline agents check`. */
export interface HookCheck {
  agent: string;
  title: string;
  scope: string;
  refused: boolean;
  detail: string;
}

/** What the hook of an agent adds to its next prompt. */
export interface NextBlock {
  /** Empty if nothing is new. */
  text: string;
  tokens: number;
  sessions: { id: string; name?: string; at: number }[];
  session?: string;
}

/** A file with access rules. */
export interface RuleFile {
  root: string;
  source: string;
  path: string;
  uri: string;
  state: "inForce" | "held" | "missing" | "unusable";
  modifiedAt?: number;
  rules: number;
  problem?: string;
}

/** A hidden file, or a hidden folder with all that is in it. */
export interface HiddenEntry {
  path: string;
  kind: "file" | "directory" | "symlink";
  rule: AccessRule;
}

/** An MCP server that agents get through `sightline mcp`. */
export interface McpServer {
  name: string;
  source: string;
  root?: string;
  state: "disabled" | "untrusted" | "idle" | "starting" | "ready" | "failed" | "changed";
  reason?: string;
  pid?: number;
  startedAt?: number;
  calls: number;
  errors: number;
  tools: { name: string; exposedAs: string; tokens: number; enabled: boolean; changed: boolean }[];
  command: string[];
  ignoredFields: string[];
}

interface McpServerParams {
  name: string;
  root?: string;
}

export interface PageMethods {
  "sightline/listRules": { params: { root?: string }; result: { files: RuleFile[]; entries: HiddenEntry[]; truncated: boolean } };
  "sightline/listMcpServers": { params: { root?: string }; result: McpServer[] };
  "sightline/setMcpServerEnabled": { params: McpServerParams & { enabled: boolean }; result: unknown };
  "sightline/restartMcpServer": { params: McpServerParams; result: unknown };
  "sightline/trustMcpServer": { params: McpServerParams; result: unknown };
  "sightline/mcpServerLog": { params: McpServerParams; result: { text: string } };
  "page/state": { params: object; result: PageState };
  "page/doctor": { params: object; result: { ok: boolean; findings: Finding[] } };
  "page/agents": { params: object; result: AgentStatus[] };
  "page/checkAgents": { params: { agents?: string[] }; result: HookCheck[] };
  "page/nextBlock": { params: { agent: string; session?: string }; result: NextBlock };
}
