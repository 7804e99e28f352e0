// Measures the page of a real store: `tests/page/run tests/page/measure.mjs`. Prints the time from the start of the
// loading to the first rows on the screen, the rows in the document at the end of the list, and the times from a click to
// the diff of 5,000 lines, and from a change of the rule file to the new list of what is hidden.
//
// CHECKPOINTS is their number, 1000 by default; a turn has two. They are created by the hooks of three agents, which takes
// minutes.

import { Browser, Project, Ui, show, turn, until } from "./harness.mjs";

const COUNT = Number(process.env.CHECKPOINTS ?? 1000);
const AGENTS = ["claude", "codex", "gemini"];
/** Number of measurements, of which the median is printed. */
const RUNS = 5;

const LONG = Array.from({ length: 5000 }, (_, index) => `line ${index}\n`).join("");

const project = await Project.create({ "a.txt": "0\n", "b.txt": "0\n", "long.txt": LONG });
for (let index = 0; index < COUNT / 2; index++) {
  const agent = AGENTS[index % 3];
  await project.turn(agent, `Change number ${index}`, { "a.txt": `${index}\n` }, { agent });
}
const ui = await Ui.start(project);
const browser = await Browser.start();
try {
  const times = [];
  for (let run = 0; run < RUNS; run++) {
    const page = await browser.open(ui.address, {
      before: (page) =>
        page.addInitScript(() => {
          new MutationObserver((_, observer) => {
            if (document.querySelector("[data-row]")) {
              observer.disconnect();
              // After the frame with the rows.
              requestAnimationFrame(() => setTimeout(() => (window.painted = performance.now())));
            }
          }).observe(document, { childList: true, subtree: true });
        }),
    });
    times.push(await until("the rows", () => page.evaluate(() => window.painted)));
    if (run === RUNS - 1) {
      const list = page.getByRole("list", { name: /^Turns/ });
      await until("the oldest turn", async () => {
        await list.evaluate((element) => (element.scrollTop = element.scrollHeight));
        return (await turn(page, "claude-1.1").count()) === 1;
      });
      console.log(`rows in the document at the end: ${await page.locator("[data-row]").count()}`);
      await project.turn("claude", "Change a long file", { "long.txt": LONG.toUpperCase() });
      await page.reload();
      const file = page.getByTestId("file").filter({ hasText: "long.txt" });
      await file.waitFor();
      const shown = (act, selector, text) =>
        page.evaluate(
          ([act, selector, text]) =>
            new Promise((resolve) => {
              const start = performance.now();
              const find = () => [...document.querySelectorAll(selector)].some((one) => one.textContent.includes(text)) && requestAnimationFrame(() => setTimeout(() => resolve(Math.round(performance.now() - start))));
              new MutationObserver(find).observe(document, { childList: true, subtree: true });
              act && document.querySelector(act).click();
            }),
          [act, selector, text],
        );
      console.log(`diff of 5,000 lines: ${await shown("[data-testid=file]", "[data-testid=diff]", "more lines")} ms`);
      await show(page, "hidden");
      await page.getByText("Hidden now").waitFor();
      const follows = shown("", ".table li", "b.txt");
      await project.write({ ".clineignore": "b.txt\n" });
      console.log(`a new rule: ${await follows} ms`);
    }
    await page.context().close();
  }
  times.sort((a, b) => a - b);
  console.log(`first rows of ${COUNT} checkpoints: ${times.map(Math.round).join(", ")} ms, median ${Math.round(times[(RUNS - 1) / 2])} ms`);
} finally {
  await browser.stop();
  await ui.stop();
  project.remove();
}
