/** The screen Health: editors, agents, MCP servers, the store, and what `sightline doctor` finds. */

import { useState } from "preact/hooks";

import type { McpServer } from "../../../types/protocol";
import type { HookCheck, PageState } from "../page";
import { Card, Code, CopyButton, Dim, Do, Dot, Line, Row, Table } from "../parts";
import { useRequest } from "../state";
import { facts, joined, plural, size, when } from "../text";
import { rpc } from "../transport";
import { Bridges } from "./bridges";

interface HealthProps {
  state: PageState | undefined;
  root: string | undefined;
}

export function Health({ state, root }: HealthProps) {
  return (
    <div class="main page">
      <h1>Does everything work?</h1>
      {state?.version && <Dim>Sightline {state.version}</Dim>}
      <Editor state={state} />
      <Agents root={root} />
      <Servers readOnly={!!state?.readOnly} />
      <Store root={root} />
      <Doctor />
    </div>
  );
}

/** Something to do, with its command to copy. */
function Remedy({ text }: { text: string }) {
  const command = text.split("`")[1];
  return (
    <p>
      <Code text={text} /> {command && <CopyButton text={command} />}
    </p>
  );
}

function Doctor() {
  const answer = useRequest("page/doctor", {}, ["didChangeAgents", "didChangeRules"]);
  const { data } = answer;
  const bad = data?.findings.filter(({ ok }) => !ok).length;
  return (
    <Card title="This machine" ok={data?.ok} answer={answer}>
      {data && <p>{bad ? `${plural(bad, "thing")} to do.` : "Nothing to do."}</p>}
      <Table
        items={data?.findings}
        row={({ what, found, ok, remedy }) => (
          <Row ok={ok} what={what}>
            <Code text={found} />
            {!ok && <Remedy text={remedy} />}
          </Row>
        )}
      />
    </Card>
  );
}

function Editor({ state }: { state: PageState | undefined }) {
  const answer = useRequest("unsavedFiles", {}, ["didChangeContext"]);
  const { uris = [], editor, changedAt } = answer.data ?? {};
  const focus = useRequest("selection", {}, ["didChangeContext"]).data?.path;
  const isConnected = state?.server;
  return (
    <Card title="Editor" ok={isConnected || undefined} answer={answer}>
      {answer.data && <p>{isConnected ? joined(" ", `${editor || "An editor"} is connected, ${plural(uris.length, "unsaved file")}.`, focus && `In front: ${focus}.`, changedAt && `Last change ${when(changedAt)}.`) : "No editor is connected. Agents get files as they are on disk."}</p>}
      <Bridges state={state} />
      <Table items={isConnected ? uris : []} row={(uri) => <li>{decodeURIComponent(uri.replace("file://", ""))}</li>} />
    </Card>
  );
}

function Agents({ root }: { root: string | undefined }) {
  const answer = useRequest("page/agents", {}, ["didChangeAgents", "didChangeTurns"]);
  const turns = useRequest("listTurns", { root, limit: 100 }, ["didChangeTurns"]).data?.turns;
  const [checks, setChecks] = useState<HookCheck[]>();
  const { data } = answer;
  const all = (data ?? []).filter((agent) => agent.used || agent.onPath || agent.user.length || agent.project.length);
  const rows = all.map((agent) => {
    const parts = [...new Set([...agent.user, ...agent.project])];
    const checked = checks?.filter((check) => check.agent === agent.agent) ?? [];
    const ok = parts.length ? !agent.problems.length && checked.every(({ refused }) => refused) : undefined;
    return { ...agent, parts, checked, ok, last: turns?.find((turn) => turn.agent === agent.agent) };
  });
  const connected = rows.filter(({ ok }) => ok !== undefined);
  return (
    <Card title="Agents" ok={connected.length ? connected.every(({ ok }) => ok) : undefined} answer={answer}>
      {data && <p>{connected.length ? `${plural(connected.length, "agent")} connected.` : "No agent connected."}</p>}
      <Table
        items={rows}
        row={({ agent, title, version, parts, checked, ok, problems, last }) => (
          <Row key={agent} ok={ok} what={title}>
            {parts.join(", ") || "not connected"} <Dim>{facts(version, last && `last turn ${last.name}, ${when(last.startedAt)}`)}</Dim>
            {problems.map((problem) => (
              <p class="minus">
                <Code text={problem} />
              </p>
            ))}
            {checked.map(({ scope, refused, detail }) => (
              <p class={refused ? "plus" : "minus"}>
                {refused ? "✓" : "✗"} {scope}: {detail}
              </p>
            ))}
          </Row>
        )}
      />
      {data && connected.length < Math.max(1, rows.length) && <Remedy text="Connect: `sightline agents install --yes`" />}
      {connected.length > 0 && <Do label="Check hooks with a denied file" doing="Checking …" run={async () => setChecks(await rpc("page/checkAgents", {}))} />}
    </Card>
  );
}

/** What the states of a server mean, and whether they are good. */
const STATES: Record<McpServer["state"], [says: string, ok?: boolean]> = {
  disabled: ["off"],
  untrusted: ["not trusted: never started", false],
  idle: ["started by the next call"],
  starting: ["starting", true],
  ready: ["running", true],
  failed: ["failed", false],
  changed: ["a tool changed since it was first seen", false],
};

function Servers({ readOnly }: { readOnly: boolean }) {
  const answer = useRequest("listMcpServers", {}, ["didChangeMcpServers"]);
  const { data } = answer;
  const bad = data?.filter(({ state }) => STATES[state][1] === false).length;
  return (
    <Card title="MCP servers" ok={data?.length ? !bad : undefined} answer={answer}>
      {data && <p>{data.length ? `${joined(", ", plural(data.length, "server"), bad && `${bad} to look at`)}.` : "No MCP servers."}</p>}
      <Table items={data} row={(server) => <Server key={`${server.root} ${server.name}`} server={server} readOnly={readOnly} reload={answer.reload} />} />
      {data?.length === 0 && <Remedy text="Add one for all agents: `sightline mcp add NAME -- COMMAND`" />}
    </Card>
  );
}

function Server({ server, readOnly, reload }: { server: McpServer; readOnly: boolean; reload: () => void }) {
  const [log, setLog] = useState<string>();
  const { name, root, state, command, reason, calls, errors, tools, startedAt, ignoredFields } = server;
  const which = { name, root };
  const [says, ok] = STATES[state];
  const button = (label: string, action: () => Promise<unknown>) => <Do label={label} run={() => action().then(reload)} />;
  const isOff = state === "disabled";
  return (
    <Row data-server={name} ok={ok} what={name}>
      {facts(says, reason, startedAt !== undefined && `since ${when(startedAt)}`, tools.length > 0 && plural(tools.length, "tool"), calls > 0 && plural(calls, "call"), errors > 0 && plural(errors, "error"), ignoredFields.length > 0 && `ignored: ${ignoredFields.join(", ")}`)}
      <p>
        <code>{command.join(" ")}</code>
      </p>
      <Line>
        {!readOnly && (
          <>
            {/untrusted|changed/.test(state) && button("Trust", () => rpc("trustMcpServer", which))}
            {button(isOff ? "Enable" : "Disable", () => rpc("setMcpServerEnabled", { ...which, enabled: isOff }))}
            {!/disabled|untrusted|idle/.test(state) && button("Restart", () => rpc("restartMcpServer", which))}
          </>
        )}
        <Do label="Log" aria-expanded={log !== undefined} run={async () => setLog(log === undefined ? (await rpc("mcpServerLog", which)).text : undefined)} />
      </Line>
      {log !== undefined && <pre class="block">{log || "Nothing yet."}</pre>}
    </Row>
  );
}

function Store({ root }: { root: string | undefined }) {
  const answer = useRequest("checkpointStats", { root }, ["didCreateCheckpoint"]);
  const { data } = answer;
  const [newest] = useRequest("listCheckpoints", { root, limit: 1 }, ["didCreateCheckpoint"]).data?.checkpoints ?? [];
  const [problems, setProblems] = useState<string[]>();
  return (
    <Card title="Checkpoints" ok={data && !problems?.length} answer={answer}>
      {data && <p>{data.count ? `${joined(", ", `${plural(data.count, "checkpoint")} in ${size(data.bytes)}`, data.oldest && `the oldest from ${when(data.oldest)}`, data.verifiedAt && `verified ${when(data.verifiedAt)}`)}.` : "No checkpoints yet."}</p>}
      {!!newest?.skipped.length && <p>Not in the newest one: {newest.skipped.map(({ path, reason }) => `${path} (${reason})`).join(", ")}</p>}
      {problems && (
        <p>
          <Dot ok={!problems.length} /> {problems.join("; ") || "Every checkpoint is intact."}
        </p>
      )}
      <Do label="Verify now" doing="Verifying …" run={async () => (setProblems((await rpc("verifyCheckpoints", { root })).problems), answer.reload())} />
    </Card>
  );
}
