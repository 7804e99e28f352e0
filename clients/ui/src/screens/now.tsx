/** The screen Now: what an agent gets with its next prompt, and what all of it is made of. */

import { useState } from "preact/hooks";

import type { Section, SectionId } from "../../../types/protocol";
import { CopyButton, Pending, Select } from "../parts";
import { type Route, useRequest } from "../state";
import { ago, plural, visible, visibleText } from "../text";

/** Where the parts of the block come from. */
const SOURCES: Partial<Record<SectionId, string>> = {
  workspaceRoots: "workspace folders",
  visibleFiles: "windows of the editor",
  openTabs: "tabs of the editor",
  runningTerminals: "terminals of the editor",
  inactiveTerminals: "terminals of the editor",
  recentlyModified: "files on disk, since the agent saw them",
  currentTime: "clock",
  files: "files on disk, without hidden ones",
  workspaceConfiguration: "git",
  cliTools: "search path",
  unsavedFiles: "the editor",
  diagnostics: "language servers of the editor",
  contextWindow: "usage that the agent reported",
  mode: "the agent",
};

const AGENTS = ["claude", "codex", "gemini", "qwen", "copilot", "opencode", "cline"];

const EVENTS = ["didChangeContext", "didChangeRules", "didChangeServer", "didChangeTurns"] as const;

export function Now({ route, go }: { route: Route; go: (query: Record<string, string | undefined>) => void }) {
  const { agent = "claude", session, whole } = route.query;
  const block = useRequest("sightline/environmentDetails", { consume: false }, EVENTS);
  const next = useRequest("page/nextBlock", { agent, session }, EVENTS);
  const hasNext = next.error?.kind !== "missing";
  const isWhole = !hasNext || whole !== undefined;
  const isEmpty = !isWhole && next.data?.text === "";
  const shown = isWhole || isEmpty ? block : next;
  const sessions = next.data?.sessions ?? [];
  return (
    <div class="split split-now">
      <section class="main" aria-label="The block">
        <h1>What agents see now</h1>
        {hasNext && (
          <div class="buttons">
            <Select label="As seen by" value={agent} options={AGENTS.map((name) => [name, `as seen by ${name}`])} choose={(name) => go({ agent: name, whole })} />
            {sessions.length > 1 && !isWhole && <Select label="Session" value={session ?? next.data?.session} options={sessions.map(({ id, turn, at }) => [id, `${turn ?? id}, ${ago(at)}`])} choose={(id) => go({ agent, session: id })} />}
            <Select label="What to show" value={isWhole ? "1" : ""} options={[["", "with its next prompt"], ["1", "everything, as for a new session"]]} choose={(value) => go({ agent, session, whole: value })} />
          </div>
        )}
        <Pending answer={shown} what="the block" />
        {isEmpty && <p class="note">Nothing is added to the next prompt of {agent}: it has this state, or no editor is connected. Below is everything that it can ask for.</p>}
        {shown.data && (
          <>
            <div class="files-head">
              <span class="dim">{plural(shown.data.tokens, "token")}. Nothing is marked as delivered by looking at it.</span>
              <span class="right">
                <CopyButton text={shown.data.text} label="Copy" />
              </span>
            </div>
            <Block text={shown.data.text} />
          </>
        )}
      </section>
      <aside class="side" aria-label="Parts of the block">
        <h2>Where it comes from</h2>
        <Pending answer={block} what="the parts" />
        <ul class="parts">{block.data?.sections.map((section) => <Part key={section.id} section={section} total={block.data?.tokens ?? 0} />)}</ul>
      </aside>
    </div>
  );
}

/** The text as it is sent, with its headings set off. */
function Block({ text }: { text: string }) {
  return (
    <pre class="block" data-testid="now-block" tabIndex={0} aria-label="The block">
      {visibleText(text)
        .split(/^(# .*)$/m)
        .map((part, index) => (index % 2 === 1 ? <strong key={index}>{part}</strong> : part))}
    </pre>
  );
}

function Part({ section, total }: { section: Section; total: number }) {
  const { id, heading, tokens, omitted, derived } = section;
  const [isOpen, setOpen] = useState(false);
  return (
    <li>
      <button class="part" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span class="part-name">{visible(heading)}</span>
        <span class="dim">{plural(tokens, "token")}</span>
        <meter min={0} max={Math.max(total, 1)} value={tokens} aria-label="Share of the block" />
        <span class="dim part-source">
          from {SOURCES[id] ?? id}
          {derived && ", derived from open documents"}
        </span>
        {omitted > 0 && <span class="part-cut">{plural(omitted, "entry", "entries")} left out: hidden, outside, or over the limit</span>}
      </button>
      {isOpen && <pre class="block">{visibleText(section.text)}</pre>}
    </li>
  );
}
