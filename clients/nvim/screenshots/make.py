"""Takes the screenshots of the README with Neovim in a terminal (tmux).

    python3 make.py NVIM FOLDER_OF_SIGHTLINE

Needs tmux. Writes SVG files to its own folder; review them before committing.
"""

import json, pathlib, shutil, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
COLUMNS, ROWS = 100, 24
sys.path.append(str(REPOSITORY / "docs/pictures"))

from terminal import terminal  # noqa: E402


def turn(sightline, shop, home, prompt, files):
    """Plays a turn of an agent that writes files, as its hooks report it."""

    def hook(event, **fields):
        command = [sightline, "hook", event, "--agent", "claude", "--checkpoints"]
        given = json.dumps({"session_id": "s1", "cwd": str(shop), **fields})
        subprocess.run(command, cwd=shop, env={"HOME": str(home)}, input=given, text=True, check=True, stdout=subprocess.DEVNULL)

    hook("UserPromptSubmit", prompt=prompt)
    for name, text in files.items():
        hook("PreToolUse", tool_name="Write", tool_input={"file_path": name})
        (shop / name).write_text(text)
    hook("Stop")


def main():
    nvim, programs = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    home = pathlib.Path(tempfile.mkdtemp())
    shop, pack = home / "shop", home / ".local/share/nvim/site/pack/sightline/start"
    shutil.copytree(REPOSITORY / "tests/fixtures/sample", shop)
    pack.mkdir(parents=True)
    (pack / "sightline").symlink_to(REPOSITORY / "clients/nvim")
    (home / ".config/nvim").mkdir(parents=True)
    (home / ".config/nvim/init.lua").write_text('vim.o.swapfile = false\nrequire("sightline").setup({})\n')

    with terminal(shop, home, programs, [nvim, "src/cart.py"], COLUMNS, ROWS) as shown:

        def command(line):
            shown.keys("Escape", f":{line}", "Enter")

        shown.wait("def total")
        command("vsplit src/prices.py")
        shown.wait("bread")
        command("Sightline checkpoint before the experiment")
        shown.wait("sightline: checkpoint")
        command("Sightline environment")
        shown.wait("# Neovim Open Tabs")
        shown.shot(HERE / "environment.svg")
        shown.keys("q")
        prices = shop / "src/prices.py"
        prices.write_text(prices.read_text().replace("250", "275"))
        (shop / "src/new.py").write_text("TODO = []\n")
        command("checktime")
        shown.wait("275")
        command("Sightline diff")
        shown.wait("Changes since")
        shown.keys("1", "Enter")
        shown.wait("1/2")
        shown.keys("]", "f")
        shown.wait("2/2")
        shown.shot(HERE / "diff.svg")
        command("tabclose")
        command("Sightline restore")
        shown.wait("Restore checkpoint")
        shown.keys("1", "Enter")
        shown.wait("R restores 2 files")
        shown.keys("x")
        shown.wait("R restores 1 file")
        shown.shot(HERE / "restore.svg")
        shown.keys("q")
        sightline = f"{programs}/sightline"
        turn(sightline, shop, home, "Add vouchers for books", {"src/new.py": "RATES = {'book': 10}\n"})
        (shop / "notes.md").write_text("- stamps\n")
        cart = shop / "src/cart.py"
        turn(sightline, shop, home, "Make total() faster", {"src/cart.py": cart.read_text().replace("sum(", "max(")})
        turn(sightline, shop, home, "Explain total()", {})
        command("Sightline turns")
        shown.wait("claude-1.3")
        shown.keys("j")
        shown.wait("max(")
        shown.shot(HERE / "turns.svg")
    shutil.rmtree(home, ignore_errors=True)


main()
