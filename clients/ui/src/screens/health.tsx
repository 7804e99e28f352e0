/** The screen Health: editors, agents, MCP servers, the store, and what `sightline doctor` finds. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import type { McpServer } from "../../../types/protocol";
import type { AgentStatus, HookCheck, PageState } from "../page";
import { Alert, Code, CopyButton, Dot, Pending } from "../parts";
import { type Answer, transport, useAction, useRequest } from "../state";
import { ago, plural, size, visible, visibleText, when } from "../text";

export function Health({ state, root }: { state: PageState | undefined; root: string | undefined }) {
  return (
    <div class="main page">
      <h1>Does everything work?</h1>
      <div class="cards">
        <Editor state={state} />
        <Agents />
        <Servers readOnly={state?.readOnly ?? false} />
        <Store root={root} />
        <Doctor />
      </div>
    </div>
  );
}

/** A card: a state, a sentence, details. `ok` is absent while it is not known. */
function Card({ title, ok, says, answer, children }: { title: string; ok?: boolean; says?: string; answer: Answer<unknown>; children?: ComponentChildren }) {
  if (answer.error?.kind === "missing") {
    return null;
  }
  return (
    <section class="card">
      <h2>
        <Dot ok={ok} /> {title}
      </h2>
      <Pending answer={answer} what={title.toLowerCase()} />
      {says && <p>{visible(says)}</p>}
      {children}
    </section>
  );
}

/** Something to do, with its command to copy. */
function Remedy({ text }: { text: string }) {
  const command = /`([^`]+)`/.exec(text)?.[1];
  return (
    <p class="remedy">
      <Code text={visible(text)} /> {command !== undefined && <CopyButton text={command} label="Copy command" />}
    </p>
  );
}

function Doctor() {
  const answer = useRequest("page/doctor", {}, ["didChangeAgents", "didChangeRules", "didChangeServer"]);
  const { data } = answer;
  const bad = data?.findings.filter(({ ok }) => !ok) ?? [];
  return (
    <Card title="This machine" ok={data?.ok} says={data && (bad.length === 0 ? "Everything that Sightline needs is there." : `${plural(bad.length, "thing")} to do.`)} answer={answer}>
      <ul class="table">
        {data?.findings.map(({ what, found, ok, remedy }) => (
          <li key={what}>
            <Dot ok={ok} />
            <span class="what">{visible(what)}</span>
            <span class="found">
              <Code text={visible(found)} />
              {!ok && <Remedy text={remedy} />}
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Editor({ state }: { state: PageState | undefined }) {
  const unsaved = useRequest("sightline/unsavedFiles", {}, ["didChangeContext", "didChangeServer"]);
  const isConnected = state === undefined || state.server;
  const uris = unsaved.data?.uris ?? [];
  const says = isConnected ? `An editor is connected. ${uris.length === 0 ? "It has no unsaved files." : `${plural(uris.length, "file")} with unsaved text:`}` : "No editor is connected. Agents get files as they are on disk.";
  return (
    <Card title="Editor" ok={isConnected || undefined} says={unsaved.data && says} answer={unsaved}>
      <ul class="table">
        {uris.map((uri) => (
          <li key={uri}>{visible(decodeURIComponent(uri.replace("file://", "")))}</li>
        ))}
      </ul>
    </Card>
  );
}

function Agents() {
  const answer = useRequest("page/agents", {}, ["didChangeAgents", "didChangeTurns"]);
  const { data } = answer;
  const [checks, setChecks] = useState<HookCheck[]>();
  const { busy, problem, run } = useAction();
  const connected = data?.filter(({ user, project }) => user.length + project.length > 0) ?? [];
  const unconnected = data?.filter((agent) => (agent.used || agent.onPath) && !connected.includes(agent)) ?? [];
  const says = data && (connected.length === 0 ? "No agent is connected." : `${plural(connected.length, "agent")} connected.`);
  const refuses = checks === undefined || checks.every(({ refused }) => refused);
  return (
    <Card title="Agents" ok={connected.length === 0 ? undefined : refuses && connected.every(({ problems }) => problems.length === 0)} says={says} answer={answer}>
      <ul class="table">
        {connected.map((agent) => (
          <AgentRow key={agent.agent} agent={agent} checks={checks?.filter((check) => check.agent === agent.agent)} />
        ))}
        {unconnected.map(({ agent, title }) => (
          <li key={agent}>
            <Dot /> <span class="what">{title}</span> <span class="dim">not connected</span>
          </li>
        ))}
      </ul>
      {data && (unconnected.length > 0 || connected.length === 0) && <Remedy text="Connect: `sightline agents install --yes`" />}
      <Alert text={problem} />
      {connected.length > 0 && (
        <button disabled={busy} onClick={() => run(async () => setChecks(await transport.rpc("page/checkAgents", {})))}>
          {busy ? "Checking …" : "Check hooks with a denied file"}
        </button>
      )}
    </Card>
  );
}

function AgentRow({ agent, checks }: { agent: AgentStatus; checks: HookCheck[] | undefined }) {
  const { title, user, project, problems } = agent;
  const parts = [...new Set([...user, ...project])];
  const isBad = problems.length > 0 || checks?.some(({ refused }) => !refused);
  return (
    <li>
      <Dot ok={!isBad} />
      <span class="what">{title}</span>
      <span class="found">
        {parts.join(", ")}
        {problems.map((problem) => (
          <Remedy key={problem.what} text={`${problem.what}: ${problem.remedy}`} />
        ))}
        {checks?.map(({ scope, refused, detail }) => (
          <p key={scope + detail} class={refused ? "plus" : "minus"}>
            {refused ? "✓" : "✗"} {visible(`${scope}: ${detail}`)}
          </p>
        ))}
      </span>
    </li>
  );
}

const STATES: Record<McpServer["state"], string> = {
  disabled: "off",
  untrusted: "not trusted: never started",
  idle: "started by the next call",
  starting: "starting",
  ready: "running",
  failed: "failed",
  changed: "a tool changed since it was first seen",
};

function Servers({ readOnly }: { readOnly: boolean }) {
  const answer = useRequest("sightline/listMcpServers", {}, ["didChangeMcpServers", "didChangeServer"]);
  const { data } = answer;
  const bad = data?.filter(({ state }) => state === "failed" || state === "changed" || state === "untrusted") ?? [];
  const says = data && (data.length === 0 ? "No MCP servers behind Sightline." : `${plural(data.length, "server")}${bad.length > 0 ? `, ${bad.length} to look at` : ""}.`);
  return (
    <Card title="MCP servers" ok={data?.length ? bad.length === 0 : undefined} says={says} answer={answer}>
      <ul class="table">
        {data?.map((server) => (
          <Server key={`${server.root} ${server.name}`} server={server} readOnly={readOnly} reload={answer.reload} />
        ))}
      </ul>
      {data?.length === 0 && <Remedy text="Put a server behind the rules, for all agents: `sightline mcp add NAME -- COMMAND`" />}
    </Card>
  );
}

function Server({ server, readOnly, reload }: { server: McpServer; readOnly: boolean; reload: () => void }) {
  const { busy, problem, run } = useAction();
  const [log, setLog] = useState<string>();
  const { name, root, state, reason, calls, errors, tools, startedAt, ignoredFields } = server;
  const which = { name, root };
  const change = (action: () => Promise<unknown>) => () => run(() => action().then(reload));
  const isBad = state === "failed" || state === "changed" || state === "untrusted";
  const facts = [STATES[state], reason, startedAt !== undefined && `since ${ago(startedAt)}`, plural(tools.length, "tool"), calls > 0 && plural(calls, "call"), errors > 0 && plural(errors, "error"), ignoredFields.length > 0 && `ignored: ${ignoredFields.join(", ")}`];
  return (
    <li data-server={name}>
      <Dot ok={isBad ? false : state === "disabled" ? undefined : true} />
      <span class="what">{visible(name)}</span>
      <span class="found">
        {visible(facts.filter(Boolean).join(" · "))}
        <span class="buttons">
          {!readOnly && (
            <>
              {(state === "untrusted" || state === "changed") && (
                <button disabled={busy} title={visible(server.command.join(" "))} onClick={change(() => transport.rpc("sightline/trustMcpServer", which))}>
                  Trust
                </button>
              )}
              <button disabled={busy} onClick={change(() => transport.rpc("sightline/setMcpServerEnabled", { ...which, enabled: state === "disabled" }))}>
                {state === "disabled" ? "Enable" : "Disable"}
              </button>
              {state !== "disabled" && state !== "untrusted" && (
                <button disabled={busy} onClick={change(() => transport.rpc("sightline/restartMcpServer", which))}>
                  Restart
                </button>
              )}
            </>
          )}
          <button aria-expanded={log !== undefined} onClick={() => (log === undefined ? run(async () => setLog((await transport.rpc("sightline/mcpServerLog", which)).text)) : setLog(undefined))}>
            Log
          </button>
        </span>
        <Alert text={problem} />
        {log !== undefined && <pre class="block">{log === "" ? "It printed nothing." : visibleText(log)}</pre>}
      </span>
    </li>
  );
}

function Store({ root }: { root: string | undefined }) {
  const folder = { root };
  const answer = useRequest("sightline/checkpointStats", folder, ["didCreateCheckpoint", "didChangeServer"]);
  const { data } = answer;
  const [verified, setVerified] = useState<{ ok: boolean; problems: string[] }>();
  const { busy, problem, run } = useAction();
  const says = data && (data.count === 0 ? "No checkpoints yet." : `${plural(data.count, "checkpoint")} in ${size(data.bytes)}${data.oldest === undefined ? "" : `, the oldest from ${when(data.oldest)}`}.`);
  return (
    <Card title="Checkpoints" ok={data && (verified?.ok ?? true)} says={says} answer={answer}>
      {verified && <p class={verified.ok ? "plus" : "minus"}>{verified.ok ? "✓ Every checkpoint is intact." : visible(verified.problems.join("; "))}</p>}
      <Alert text={problem} />
      <button disabled={busy} onClick={() => run(async () => setVerified(await transport.rpc("sightline/verifyCheckpoints", folder)))}>
        {busy ? "Verifying …" : "Verify now"}
      </button>
    </Card>
  );
}
