/** The screen Hidden: whether agents may see a file or run a command, the rules, and the log. */

import { useEffect, useState } from "preact/hooks";

import type { AccessRule, CheckAccessResult, Decision, DeniedEntry, RuleFile } from "../../../types/protocol";
import type { PageRoot } from "../page";
import { Code, Dot, Empty, Path, Pending, Select } from "../parts";
import { type Route, transport, useAction, useRequest } from "../state";
import { ago, clock, day, plural, visible } from "../text";

/** Time without typing before a check, in milliseconds. */
const PAUSE = 200;
/** Number of decisions and entries that are shown at first. */
const SHOWN = 200;

const RULE_EVENTS = ["didChangeRules", "didChangeServer"] as const;

export function Hidden({ route, go, root, folders }: { route: Route; folders: readonly PageRoot[]; go: (query: Record<string, string | undefined>) => void; root: string | undefined }) {
  return (
    <div class="main page">
      <h1>What is hidden from agents, and why</h1>
      <Check asked={route.query["check"] ?? ""} ask={(check) => go({ ...route.query, check })} />
      <Rules root={root} />
      <Log agent={route.query["agent"]} folders={folders} select={(agent) => go({ ...route.query, agent })} />
    </div>
  );
}

/** A text with blanks or signs of the shell is a command; in quotes it is a path. */
function question(text: string): { paths: string[] } | { command: string } {
  const quoted = /^(["'])(.*)\1$/.exec(text);
  if (quoted) {
    return { paths: [quoted[2] ?? ""] };
  }
  return /[\s|;&<>$`*]/.test(text) ? { command: text } : { paths: [text] };
}

function Check({ asked, ask }: { asked: string; ask: (text: string) => void }) {
  const [text, setText] = useState(asked);
  useEffect(() => {
    const timer = setTimeout(() => ask(text.trim()), PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  const answer = useRequest("sightline/checkAccess", asked === "" ? undefined : question(asked), RULE_EVENTS);
  return (
    <section class="card">
      <label for="check">
        <h2>Can an agent see …</h2>
      </label>
      <input id="check" data-testid="access-input" spellcheck={false} autocomplete="off" placeholder="a path, such as .env, or a command, such as cat .env" value={text} onInput={({ currentTarget }) => setText(currentTarget.value)} onKeyDown={({ key }) => key === "Enter" && ask(text.trim())} />
      <div aria-live="polite" data-testid="access-verdict">
        {asked !== "" && <Pending answer={answer} what="the answer" />}
        {answer.data && asked === text.trim() && <Verdict answer={answer.data} />}
      </div>
      {asked === "" && <p class="note">A path in quotes may have blanks. A command is judged by its words; it is not run.</p>}
    </section>
  );
}

function Verdict({ answer }: { answer: CheckAccessResult }) {
  const [path] = answer.paths;
  const { command } = answer;
  if (command) {
    return (
      <>
        <p>
          <Dot ok={command.allowed} /> <strong>{command.allowed ? "Allowed" : "Denied"}</strong>
          {command.allowed ? ": no word of this command names a hidden file." : ": an agent cannot run this command."}
        </p>
        <ul>
          {command.denied.map(({ path: word, reason, rule }) => (
            <li key={word}>
              <Code text={visible(reason)} /> <Rule rule={rule} />
            </li>
          ))}
        </ul>
        {command.instead !== undefined && (
          <p>
            Allowed instead: <code>{visible(command.instead)}</code>
          </p>
        )}
      </>
    );
  }
  if (!path) {
    return null;
  }
  const words = { allowed: "Allowed: agents can see it.", denied: "Denied: hidden from agents.", outside: "Outside the workspace: agents cannot read it through Sightline." };
  const [first, rest] = words[path.access].split(":");
  return (
    <p>
      <Dot ok={path.access === "allowed"} /> <strong>{first}</strong>:{rest} {visible(path.reason ?? "")} <Rule rule={path.rule ?? path.allowedBy} />
    </p>
  );
}

/** A rule, with a link to its line. */
function Rule({ rule }: { rule: AccessRule | undefined }) {
  const { problem, run } = useAction();
  if (!rule) {
    return null;
  }
  const name = `${rule.source}${rule.line > 0 ? `:${rule.line}` : ""}`;
  // A built-in rule is in no file.
  const isFile = !rule.source.startsWith("built-in");
  return (
    <span class="rule">
      {isFile ? (
        <button class="link" title="Open in the editor" onClick={() => run(() => transport.open(rule.source, rule.line))}>
          {visible(name)}
        </button>
      ) : (
        <span class="dim">{visible(name)}</span>
      )}{" "}
      <code>{visible(rule.pattern)}</code>
      {problem !== undefined && <span role="alert"> {visible(problem)}</span>}
    </span>
  );
}

const STATES: Record<RuleFile["state"], string> = { inForce: "in force", held: "held: being saved", unusable: "cannot be read: everything is denied" };

function Rules({ root }: { root: string | undefined }) {
  const answer = useRequest("sightline/listRules", { root }, RULE_EVENTS);
  const [limit, setLimit] = useState(SHOWN);
  const { data } = answer;
  if (answer.error?.kind === "missing") {
    return null;
  }
  const files = data?.files ?? [];
  const entries = data?.entries ?? [];
  return (
    <>
      <section class="card">
        <h2>Rules</h2>
        <Pending answer={answer} what="the rules" />
        {data && files.length === 0 && (
          <p class="note">
            Only the built-in rules: files that usually contain secrets. <code>sightline init</code> writes a <code>.clineignore</code> for more.
          </p>
        )}
        <ul class="table">
          {files.map((file) => (
            <li key={file.uri}>
              <Dot ok={file.state === "inForce"} /> <Rule rule={{ source: file.source, line: 0, pattern: plural(file.rules, "rule") }} />
              <span class="dim">
                {STATES[file.state]}
                {file.modifiedAt !== undefined && `, saved ${ago(file.modifiedAt)}`}
              </span>
              {file.problem !== undefined && <span class="minus">{visible(file.problem)}</span>}
            </li>
          ))}
        </ul>
      </section>
      {data && (
        <section class="card">
          <h2>
            Hidden now <span class="dim">{plural(entries.length, "entry", "entries")}</span>
          </h2>
          {entries.length === 0 && <p class="note">Nothing in this workspace is hidden.</p>}
          <ul class="table">
            {entries.slice(0, limit).map((entry) => (
              <EntryRow key={entry.uri} entry={entry} />
            ))}
          </ul>
          {entries.length > limit && (
            <button onClick={() => setLimit(Infinity)}>
              Show {plural(entries.length - limit, "more entry", "more entries")}
            </button>
          )}
          {data.problem !== undefined && <p class="failure">{visible(data.problem)}</p>}
          {data.truncated && <p class="note">The list is not complete: it ends at a limit.</p>}
        </section>
      )}
    </>
  );
}

function EntryRow({ entry: { path, kind, rule } }: { entry: DeniedEntry }) {
  return (
    <li>
      <Path path={kind === "directory" ? path.replace(/\/?$/, "/") : path} />
      <span class="right">
        <Rule rule={rule} />
      </span>
    </li>
  );
}

const VERDICTS: Record<Decision["verdict"], string> = { denied: "refused", redacted: "redacted", allowed: "allowed" };

function Log({ agent, folders, select }: { agent: string | undefined; folders: readonly PageRoot[]; select: (agent: string) => void }) {
  const [limit, setLimit] = useState(SHOWN);
  const answer = useRequest("sightline/listDecisions", { all: true, limit: limit + 1 }, ["decision", "didChangeServer"]);
  const { data } = answer;
  if (answer.error?.kind === "missing") {
    return null;
  }
  const all = data?.decisions ?? [];
  const agents = [...new Set(all.map((decision) => decision.agent ?? ""))].filter((name) => name !== "").sort();
  const shown = all.filter((decision) => !agent || decision.agent === agent).slice(0, limit);
  return (
    <section class="card">
      <div class="files-head">
        <h2>Decisions</h2>
        {agents.length > 0 && (
          <span class="right">
            <Select label="Agent" value={agent} options={[["", "All agents"], ...agents]} choose={select} />
          </span>
        )}
      </div>
      <Pending answer={answer} what="the log" />
      {data && shown.length === 0 && (
        <Empty title="No decisions yet.">
          <p>What agents are refused, and what is redacted for them, is listed here. Never a content, never a prompt.</p>
        </Empty>
      )}
      <ul class="table">
        {shown.map((decision, index) => (
          <li key={`${decision.at} ${index}`} data-testid="decision">
            <time class="dim" dateTime={new Date(decision.at).toISOString()}>
              {day(decision.at) === "Today" ? "" : `${day(decision.at)}, `}
              {clock(decision.at, true)}
            </time>
            <span class={`verdict ${decision.verdict === "denied" ? "minus" : "dim"}`}>{VERDICTS[decision.verdict]}</span>
            <span class="subject">{visible(folders.reduce((subject, { path }) => subject.replace(`${path}/`, ""), decision.subject))}</span>
            <span class="dim">{visible([decision.agent ?? decision.door, decision.tool].filter(Boolean).join(" · "))}</span>
            <span class="right">
              <Rule rule={decision.rule} />
            </span>
          </li>
        ))}
      </ul>
      {all.length > limit && (
        <button onClick={() => setLimit(limit * 10)}>
          Show more
        </button>
      )}
    </section>
  );
}
