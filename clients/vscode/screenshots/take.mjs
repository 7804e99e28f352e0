// Takes the screenshots of the README and the walkthrough. Run by `take`.

import { rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { badge, startEditor, until } from "../../../tests/vscode/harness.mjs";

const picture = (name) => fileURLToPath(new URL(`${name}.png`, import.meta.url));

const editor = await startEditor({
  viewport: { width: 1200, height: 640 },
  settings: {
    "workbench.colorTheme": "Default Light Modern",
    "editor.minimap.enabled": false,
    "breadcrumbs.enabled": false,
    "diffEditor.useInlineViewWhenSpaceIsLimited": false,
    "diffEditor.renderGutterMenu": false,
  },
  files: {
    ".clineignore": ".env\nsecrets/\n",
    ".env": "TOKEN=not-for-agents\n",
    "README.md": "# Corner shop\n\nWhat is in the cart, and what it costs.\n",
    "docs/ideas.md": "- vouchers\n",
    "secrets/suppliers.csv": "name,price\n",
    "src/cart.py": [
      "from prices import PRICES",
      "",
      "",
      "def total(cart):",
      "    return sum(PRICES[item] * count for item, count in cart.items())",
      "",
    ].join("\n"),
    "src/prices.py": 'PRICES = {"apple": 2, "pear": 3}\n',
  },
});

try {
  const { page, workspace } = editor;
  const file = (name) => path.join(workspace, name);
  const settled = async () => {
    // A place without a tooltip.
    await page.mouse.move(800, 560);
    await page.waitForTimeout(700);
  };

  await editor.open(".env");
  await until("a badge on .env", async () => (await badge(editor.explorerRow(".env"))) === "⊘");
  await editor.command("Sightline: Check Agent Access");
  await editor.toast(".env is hidden from agents").waitFor();
  await settled();
  await page.screenshot({ path: picture("hidden") });

  await editor.command("Notifications: Clear All Notifications");
  await editor.command("View: Close All Editor Groups");
  await editor.open("prices.py", { keep: true });
  await editor.open("cart.py", { keep: true });
  await page.keyboard.press("Control+\\");
  await editor.command("Sightline: Open Environment Details");
  await page.locator(".view-line").filter({ hasText: "environment_details" }).first().waitFor();
  await settled();
  await page.screenshot({ path: picture("environment") });

  await editor.command("View: Close All Editor Groups");
  await editor.showCheckpoints();
  await page.getByRole("button", { name: "Create Checkpoint" }).first().click();
  await editor.answer("before the vouchers");
  await editor.row("before the vouchers").waitFor();
  await writeFile(
    file("src/cart.py"),
    [
      "from prices import PRICES",
      "from vouchers import discount",
      "",
      "",
      "def total(cart, voucher=None):",
      "    full = sum(PRICES[item] * count for item, count in cart.items())",
      "    return full - discount(voucher, full)",
      "",
    ].join("\n"),
  );
  await writeFile(file("src/vouchers.py"), "def discount(voucher, full):\n    return full * voucher.rate if voucher else 0\n");
  await rm(file("docs/ideas.md"));
  await editor.rowToggle("before the vouchers");
  await editor.row("cart.py").click();
  await page.locator(".editor.modified .view-line").filter({ hasText: "discount" }).first().waitFor();
  await settled();
  await page.screenshot({ path: picture("compare") });

  await editor.rowAction("before the vouchers", "Restore Checkpoint");
  await settled();
  await page.screenshot({ path: picture("restore") });

  await editor.dismiss();
  await editor.command("View: Close All Editor Groups");
  await editor.turn("Add vouchers for books", { "src/vouchers.py": "RATES = {'book': 10}\n", "src/cart.py": "import vouchers\n" });
  await writeFile(file("docs/ideas.md"), "- stamps\n");
  await editor.turn("Make total() faster", { "src/cart.py": "import vouchers\n\n\ndef total(cart):\n    return 0\n" });
  await editor.command("Sightline: Refresh Checkpoints");
  await editor.row("Make total() faster").waitFor();
  await editor.rowToggle("Make total() faster");
  await editor.row("cart.py").click();
  await page.locator(".editor.modified .view-line").filter({ hasText: "return 0" }).first().waitFor();
  await editor.rowAction("Make total() faster", "Restore to Before This Turn");
  await settled();
  await page.screenshot({ path: picture("turns") });
} finally {
  await editor.stop();
}
