/** Requests that only `sightline ui` answers. In an editor they are missing. */

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
  /** Names of all coding agents that can be connected. */
  agents: string[];
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
  version?: string | null;
  outdated: boolean;
  /** Parts that are installed for the user and for the project. */
  user: string[];
  project: string[];
  /** Codex only: whether it runs our hooks. */
  trusted?: boolean | null;
  problems: string[];
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
  sessions: { id: string; turn?: string; at: number }[];
  session?: string;
  /** When the hook added the last block. */
  deliveredAt?: number;
}

export interface PageMethods {
  "page/state": { params: object; result: PageState };
  "page/doctor": { params: object; result: { ok: boolean; findings: Finding[] } };
  "page/agents": { params: object; result: AgentStatus[] };
  "page/checkAgents": { params: { agents?: string[] }; result: HookCheck[] };
  "page/nextBlock": { params: { agent: string; session?: string }; result: NextBlock };
}
