"""Takes the screenshots of the README with Neovim in a terminal (tmux).

    python3 make.py NVIM FOLDER_OF_SIGHTLINE

Needs tmux. Writes SVG files to its own folder; review them before committing.
"""

import pathlib, shutil, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
COLUMNS, ROWS = 100, 24
sys.path.append(str(REPOSITORY / "docs/pictures"))

from terminal import terminal  # noqa: E402


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
        shown.wait("Restore 2 files")
        shown.shot(HERE / "restore.svg")
    shutil.rmtree(home, ignore_errors=True)


main()
