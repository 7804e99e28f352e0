/** The screen Now: what an agent gets with its next prompt, and what all of it is made of. */

import type { Section, SectionId } from "../../../types/protocol";
import { CopyButton, Dim, Line, Note, Pending, Right, Select } from "../parts";
import type { PageState } from "../page";
import { type Query, useRequest } from "../state";
import { facts, plural, visible, when } from "../text";
import { TASK } from "../timeline/history";
import { Bridges } from "./bridges";

/** Where the parts of the block come from, if not from what the last word of their id names in the editor. */
const SOURCES: Partial<Record<SectionId, string>> = {
  recentlyModified: "changes on disk, and restores",
  currentTime: "the clock",
  files: "files on disk",
  workspaceConfiguration: "git",
  cliTools: "the search path",
  contextWindow: "the agent",
  mode: "the agent",
};

const EVENTS = ["didChangeContext", "didChangeRules", "didChangeTurns"] as const;

interface NowProps {
  query: Query;
  go: (query: Query) => void;
  state: PageState | undefined;
}

export function Now({ query, go, state }: NowProps) {
  const { agent = "claude", session, whole } = query;
  const tasks = useRequest("listTasks", { limit: 20 }, EVENTS).data?.tasks ?? [];
  const task = tasks.find(({ taskId }) => agent === TASK + taskId);
  const seen = useRequest("taskContext", task && { taskId: task.taskId, usage: true }, EVENTS).data;
  const usage = seen?.usage;
  const block = useRequest("environmentDetails", { consume: false, taskId: task?.taskId }, EVENTS);
  const next = useRequest("page/nextBlock", agent.startsWith(TASK) ? undefined : { agent, session }, EVENTS);
  const hasNext = next.error?.kind !== "missing";
  const isWhole = !hasNext || !!whole || !!task;
  const isEmpty = !isWhole && next.data?.text === "";
  const shown = isWhole || isEmpty ? block : next;
  const sessions = next.data?.sessions ?? [];
  return (
    <div class="split now">
      <section class="main">
        <h1>What agents see now</h1>
        <Bridges state={state} />
        {hasNext && (
          <Line>
            <Select
              label="As seen by"
              value={agent}
              options={[
                ...(state?.agents ?? [agent]).map((name): [string, string] => [name, `as seen by ${name}`]),
                ...tasks.map(({ taskId, title }): [string, string] => [TASK + taskId, `in the conversation ${title}`]),
              ]}
              choose={(agent) => go({ agent, whole })}
            />
            {sessions.length > 0 && !isWhole && <Select label="Session" value={session ?? next.data?.session} options={sessions.map(({ id, turn = id, at }) => [id, `after ${turn}, ${when(at)}`])} choose={(session) => go({ agent, session })} />}
            {!task && <Select label="What to show" value={isWhole ? "1" : ""} options={[["", "with its next prompt"], ["1", "as for a new session"]]} choose={(whole) => go({ agent, session, whole })} />}
          </Line>
        )}
        {task && seen && (
          <Note>
            {facts(
              plural(task.messageCount, "message"),
              usage && `${plural(usage.tokens, "token")} of ${usage.contextWindow.toLocaleString("en")} (${usage.modelId})`,
              !!seen.changed.length && `changed since it saw them: ${seen.changed.join(", ")}`,
            )}
          </Note>
        )}
        <Pending answer={shown} />
        {isEmpty && (
          <Note>
            Nothing is added to the next prompt of {agent}: {state?.server ? "it has all of this" : "no editor is connected"}. This is what it can ask for:
          </Note>
        )}
        {shown.data && (
          <>
            <Line>
              <Dim>{facts(plural(shown.data.tokens, "token"), !!next.data?.deliveredAt && !isWhole && `last delivered ${when(next.data.deliveredAt)}`)}</Dim>
              <Right>
                <CopyButton text={shown.data.text} />
              </Right>
            </Line>
            {/* The text as it is sent, with its headings set off. */}
            <pre class="block" data-testid="now-block" tabIndex={0} aria-label="The block">
              {shown.data.text.split(/^(# .*)$/m).map((part, index) => (index % 2 ? <strong>{part}</strong> : part))}
            </pre>
          </>
        )}
      </section>
      <aside class="side">
        <h2>The whole block by part</h2>
        <Pending answer={block} />
        {block.data?.sections.map((section) => <Part key={section.id} section={section} total={block.data?.tokens ?? 0} />)}
      </aside>
    </div>
  );
}

function Part({ section, total }: { section: Section; total: number }) {
  const { id, heading, text, tokens, maxTokens, omitted, derived } = section;
  return (
    <details class="part">
      <summary>
        <Line>
          <strong>{heading}</strong>
          <Right>
            <Dim>{maxTokens === undefined ? plural(tokens, "token") : `${tokens} of ${plural(maxTokens, "token")}`}</Dim>
          </Right>
        </Line>
        <meter max={maxTokens ?? total} value={tokens} aria-label={`${visible(heading)}: ${maxTokens === undefined ? "share of the block" : "share of its budget"}`} />
        <Dim>
          from {SOURCES[id] ?? `the ${id.split(/(?=[A-Z])/).at(-1)?.toLowerCase()} of the editor`}
          {derived && ", derived from its open documents"}
        </Dim>
        {omitted > 0 && <p class="minus">{omitted} left out: hidden, outside, or over the budget</p>}
      </summary>
      <pre class="block">{text}</pre>
      <Note>
        Setting: <code>environment.sections.{id}</code>
      </Note>
    </details>
  );
}
