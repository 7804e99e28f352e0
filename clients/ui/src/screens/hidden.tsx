/** The screen Hidden: whether agents may see a file or run a command, the rules, and the log. */

import { useEffect, useState } from "preact/hooks";

import type { AccessRule, CheckAccessResult, DeniedEntry, RuleFile } from "../../../types/protocol";
import type { PageRoot } from "../page";
import { Alert, Card, Code, Dim, Do, Dot, Empty, Note, Path, Pending, Right, Table } from "../parts";
import { type Query, useRequest } from "../state";
import { clock, day, facts, joined, plural, when } from "../text";
import { open } from "../transport";

/** Time without typing before a check, in milliseconds. */
const PAUSE = 200;
/** Number of decisions in the first request. */
const DECISIONS = 200;

/** A command of which a hash is kept. */
const HASHED = / #[0-9a-f]{12}$/;

const RULE_EVENTS = ["didChangeRules"] as const;

interface HiddenProps {
  query: Query;
  go: (query: Query) => void;
  folders: readonly PageRoot[];
}

export function Hidden(props: HiddenProps) {
  const { query, go } = props;
  return (
    <div class="main page">
      <h1>What is hidden from agents, and why</h1>
      <Check asked={query["check"] ?? ""} ask={(check) => go({ ...query, check })} />
      <Rules root={query["root"]} />
      <Log {...props} />
    </div>
  );
}

/** A text with blanks or signs of the shell is a command; in quotes it is a path. */
function question(text: string): { paths: string[] } | { command: string } {
  const quoted = /^(["'])(.*)\1$/.exec(text);
  return !quoted && /[\s|;&<>$`*]/.test(text) ? { command: text } : { paths: [quoted?.[2] ?? text] };
}

function Check({ asked, ask }: { asked: string; ask: (text: string) => void }) {
  const [input, setInput] = useState(asked);
  const text = input.trim();
  useEffect(() => {
    const timer = setTimeout(ask, PAUSE, text);
    return () => clearTimeout(timer);
  }, [text]);
  const answer = useRequest("checkAccess", asked ? question(asked) : undefined, RULE_EVENTS);
  return (
    <section class="card">
      <label for="check">
        <h2>Can an agent see …</h2>
      </label>
      <input id="check" data-testid="access-input" spellcheck={false} placeholder="a path, such as .env, or a command, such as cat .env" value={input} onInput={({ currentTarget }) => setInput(currentTarget.value)} />
      <div aria-live="polite" data-testid="access-verdict">
        <Pending answer={answer} />
        {answer.data && asked === text && <Verdict answer={answer.data} />}
      </div>
      {!asked && <Note>A command is not run.</Note>}
    </section>
  );
}

const VERDICTS = {
  allowed: ["Allowed", "agents can see it"],
  denied: ["Denied", "hidden from agents"],
  outside: ["Outside the workspace", "agents cannot see it"],
};

function Verdict({ answer: { command, paths } }: { answer: CheckAccessResult }) {
  const [path] = paths;
  const [verdict, says] = command ? (command.allowed ? ["Allowed", "no word names a hidden file"] : ["Denied", "agents cannot run it"]) : VERDICTS[path?.access ?? "denied"];
  return (
    <>
      <p>
        <Dot ok={verdict === "Allowed"} /> <strong>{verdict}</strong>: {says}{path?.reason && `: ${path.reason}`} <Rule rule={path?.rule ?? path?.allowedBy} />
      </p>
      {path?.resolved && (
        <p>
          It leads to <code>{path.resolved}</code>
        </p>
      )}
      <ul class="table">
        {command?.denied.map(({ path: word, reason, rule }) => (
          <li>
            <strong>{word}</strong>
            <span>
              <Code text={reason} />
            </span>
            <Rule rule={rule} />
          </li>
        ))}
      </ul>
      {command?.instead && (
        <p>
          Allowed instead: <code>{command.instead}</code>
        </p>
      )}
    </>
  );
}

/** A built-in rule is in no file. */
function isBuiltIn(rule: AccessRule | undefined): boolean {
  return !!rule?.source.startsWith("built-in");
}

/** A rule, with a link to its line. */
function Rule({ rule }: { rule: AccessRule | undefined }) {
  if (!rule) {
    return null;
  }
  const { source, line, pattern } = rule;
  const name = joined(":", source, line);
  return (
    <span class="rule">
      {isBuiltIn(rule) ? (
        <Dim>{name}</Dim>
      ) : (
        <Do class="link" title="Open in the editor" label={name} run={() => open(source, line)} />
      )}{" "}
      <code>{pattern}</code>
    </span>
  );
}

const STATES: Record<RuleFile["state"], string> = { inForce: "in force", held: "held: being saved", unusable: "cannot be read: everything is denied" };

function Rules({ root }: { root: string | undefined }) {
  const answer = useRequest("listRules", { root }, RULE_EVENTS);
  const { data } = answer;
  const entries = data?.entries ?? [];
  const builtIn = entries.filter(({ rule }) => isBuiltIn(rule)).length;
  return (
    <>
      <Card title="Rules" answer={answer}>
        {data?.files.length === 0 && (
          <Note>
            Only the built-in rules: files that usually contain secrets. <code>sightline init</code> writes a <code>.clineignore</code> for more.
          </Note>
        )}
        <Table
          items={data?.files}
          row={({ uri, source, state, rules, modifiedAt, problem }) => (
            <li key={uri}>
              <Dot ok={state === "inForce"} /> <Rule rule={{ source, line: 0, pattern: plural(rules, "rule") }} />
              <Dim>{facts(STATES[state], modifiedAt !== undefined && `saved ${when(modifiedAt)}`)}</Dim>
              {problem && <span class="minus">{problem}</span>}
            </li>
          )}
        />
      </Card>
      {data && (
        <Card title="Hidden now" right={<Dim>{entries.length > 0 && `${plural(entries.length, "entry", "entries")}: ${builtIn} by built-in rules, ${entries.length - builtIn} by yours`}</Dim>}>
          {!entries.length && !data.problem && <Note>Nothing in this workspace is hidden.</Note>}
          <Tree entries={entries} above="" />
          <Alert error={data.problem ? { message: data.problem } : undefined} />
          {data.truncated && <Note>The list is not complete.</Note>}
        </Card>
      )}
    </>
  );
}

/** Entries below a folder: a folder with several of them is opened by a click. */
function Tree({ entries, above }: { entries: readonly DeniedEntry[]; above: string }) {
  const folders = Map.groupBy(entries, ({ path }) => path.slice(0, path.indexOf("/", above.length) + 1) || path);
  return (
    <Table
      items={[...folders]}
      row={([folder, group]) => (
        <li key={folder}>
          {group.length > 1 ? (
            <details>
              <summary>
                {folder.slice(above.length)} <Dim>{plural(group.length, "entry", "entries")}</Dim>
              </summary>
              <Tree entries={group} above={folder} />
            </details>
          ) : (
            group.map(({ path, kind, reason, rule }) => (
              <>
                <Path path={(kind === "directory" ? path.replace(/\/?$/, "/") : path).slice(above.length)} />
                <Right>{reason ?? <Rule rule={rule} />}</Right>
              </>
            ))
          )}
        </li>
      )}
    />
  );
}

function Log({ query, go, folders }: HiddenProps) {
  const { log = "" } = query;
  const [limit, setLimit] = useState(DECISIONS);
  const answer = useRequest("listDecisions", { all: true, limit }, ["decision"], true);
  const all = answer.data?.decisions ?? [];
  const shown = all.flatMap((decision) => {
    const subject = folders.reduce((subject, { path }) => subject.replace(`${path}/`, ""), decision.subject);
    return [subject, decision.agent, decision.tool, decision.verdict].join(" ").toLowerCase().includes(log.toLowerCase()) ? { ...decision, subject } : [];
  });
  return (
    <Card
      title="Decisions"
      answer={answer}
      right={
        all.length > 0 && <input type="search" aria-label="Filter decisions" placeholder="Agent, path or tool" value={log} onInput={({ currentTarget }) => go({ ...query, log: currentTarget.value })} />
      }
    >
      {answer.data && !shown.length && (
        <Empty title={all.length ? "Nothing matches." : "No decisions yet."} text="What agents are refused is listed here, without contents and prompts." />
      )}
      <Table
        items={shown}
        limit={Infinity}
        row={({ at, verdict, subject, agent, door, tool, rule }) => (
          <li data-testid="decision">
            <Dim>{facts(day(at) !== "Today" && day(at), clock(at, true))}</Dim>
            <span class={verdict === "denied" ? "minus" : "dim"}>{verdict}</span>
            <code>{subject}</code>
            <Dim>{facts(agent ?? door, tool)}</Dim>
            <Right>
              <Rule rule={rule} />
            </Right>
          </li>
        )}
      />
      {shown.some(({ subject }) => HASHED.test(subject)) && (
        <Note>
          Of commands, the first word and a hash are kept. <code>log.commands = "full"</code> in your settings keeps them whole.
        </Note>
      )}
      {all.length === limit && <button onClick={() => setLimit(limit * 5)}>Show more</button>}
    </Card>
  );
}
