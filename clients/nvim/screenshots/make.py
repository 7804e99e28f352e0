"""Makes the screenshots of the README: a real Neovim in a real terminal (tmux).

    python3 make.py NVIM FOLDER_OF_SIGHTLINE

Needs tmux. Writes SVG files beside itself; look at them before they are kept.
"""

import html, os, pathlib, re, shutil, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
COLUMNS, ROWS, CELL, LINE = 100, 24, 8.4, 18
NAMED = "#000000 #cd3131 #0dbc79 #e5e510 #2472c8 #bc3fbc #11a8cd #e5e5e5".split()
BRIGHT = "#666666 #f14c4c #23d18b #f5f543 #3b8eea #d670d6 #29b8db #ffffff".split()


def color(codes):
    """A color of an SGR sequence, after its 38 or 48; consumes its codes."""
    if codes.pop(0) == 2:
        return "#%02x%02x%02x" % tuple(codes.pop(0) for _ in range(3))
    n = codes.pop(0)
    if n < 16:
        return (NAMED + BRIGHT)[n]
    if n < 232:
        steps = (0, 95, 135, 175, 215, 255)
        n -= 16
        return "#%02x%02x%02x" % (steps[n // 36], steps[n // 6 % 6], steps[n % 6])
    return "#%02x%02x%02x" % ((8 + (n - 232) * 10,) * 3)


def style(state, codes):
    while codes:
        code = codes.pop(0)
        if code == 0:
            state.clear()
        elif code == 1:
            state["bold"] = True
        elif code == 7:
            state["reverse"] = True
        elif code == 27:
            state.pop("reverse", None)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            state["fg"] = (NAMED if code < 40 else BRIGHT)[code % 10]
        elif 40 <= code <= 47 or 100 <= code <= 107:
            state["bg"] = (NAMED if code < 50 else BRIGHT)[code % 10]
        elif code in (38, 48):
            state["fg" if code == 38 else "bg"] = color(codes)
        elif code in (39, 49):
            state.pop("fg" if code == 39 else "bg", None)


def svg(screen):
    width, height = COLUMNS * CELL + 20, ROWS * LINE + 20
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" font-family="monospace" font-size="14">']
    out.append('<rect width="100%" height="100%" rx="6" fill="#14161b"/>')
    state = {}
    for row, line in enumerate(screen.split("\n")[:ROWS]):
        column = 0
        for part in re.split(r"(\x1b\[[0-9;:]*m)", line):
            if part.startswith("\x1b"):
                style(state, [int(code or 0) for code in re.split("[;:]", part[2:-1])])
                continue
            if not part:
                continue
            fg, bg = state.get("fg", "#e0e2ea"), state.get("bg")
            if state.get("reverse"):
                fg, bg = bg or "#14161b", fg
            x, y = 10 + column * CELL, 10 + row * LINE
            length = len(part) * CELL
            if bg:
                out.append(f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="{LINE}" fill="{bg}"/>')
            weight = ' font-weight="bold"' if state.get("bold") else ""
            # Word by word, so that columns hold whatever font is there.
            for word in re.finditer(r"\S+", part):
                left, text = x + word.start() * CELL, html.escape(word.group())
                out.append(f'<text x="{left:.1f}" y="{y + 14}" fill="{fg}"{weight}>{text}</text>')
            column += len(part)
    return "\n".join(out + ["</svg>\n"])


def main():
    nvim, programs = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    home = pathlib.Path(tempfile.mkdtemp())
    shop, pack = home / "shop", home / ".local/share/nvim/site/pack/sightline/start"
    shutil.copytree(REPOSITORY / "tests/fixtures/sample", shop)
    pack.mkdir(parents=True)
    (pack / "sightline").symlink_to(REPOSITORY / "clients/nvim")
    (home / ".config/nvim").mkdir(parents=True)
    (home / ".config/nvim/init.lua").write_text('vim.o.swapfile = false\nrequire("sightline").setup({})\n')

    def tmux(*words):
        return subprocess.run(["tmux", "-L", f"shots{os.getpid()}", *words], check=True, capture_output=True, text=True).stdout

    def screen():
        return tmux("capture-pane", "-p", "-e", "-t", "shot")

    def wait(text):
        for _ in range(300):
            if text in re.sub(r"\x1b\[[0-9;:]*m", "", screen()):
                return
            time.sleep(0.05)
        raise SystemExit(f"`{text}` never came:\n{screen()}")

    def shot(name):
        time.sleep(0.5)  # The screen is drawn in several steps.
        (HERE / f"{name}.svg").write_text(svg(screen()))

    def command(line):
        tmux("send-keys", "-t", "shot", "Escape", f":{line}", "Enter")

    environment = ["env", "-i", f"HOME={home}", f"PATH={programs}:/usr/bin:/bin", "LANG=C.UTF-8", "TERM=tmux-256color"]
    start = [*environment, "COLORTERM=truecolor", nvim, "src/cart.py"]
    tmux("-f", "/dev/null", "new-session", "-d", "-s", "shot", "-x", str(COLUMNS), "-y", str(ROWS), "-c", str(shop), *start)
    try:
        wait("def total")
        command("vsplit src/prices.py")
        wait("bread")
        command("Sightline checkpoint before the experiment")
        wait("sightline: checkpoint")
        command("Sightline environment")
        wait("# Neovim Open Tabs")
        shot("environment")
        tmux("send-keys", "-t", "shot", "q")
        prices = shop / "src/prices.py"
        prices.write_text(prices.read_text().replace("250", "275"))
        (shop / "src/new.py").write_text("TODO = []\n")
        command("checktime")
        wait("275")
        command("Sightline diff")
        wait("Changes since")
        tmux("send-keys", "-t", "shot", "1", "Enter")
        wait("1/2")
        tmux("send-keys", "-t", "shot", "]", "f")
        wait("2/2")
        shot("diff")
        command("tabclose")
        command("Sightline restore")
        wait("Go back to")
        tmux("send-keys", "-t", "shot", "1", "Enter")
        wait("Restore 2 files")
        shot("restore")
    finally:
        tmux("kill-server")
        shutil.rmtree(home)


main()
