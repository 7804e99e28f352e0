"""Runs a program in a terminal (tmux) and renders its screen as SVG. Used by the picture scripts."""

import contextlib
import html
import os
import re
import subprocess
import time

CELL, LINE, MARGIN = 8.4, 18, 10
BACK, FORE = "#14161b", "#e0e2ea"
NAMED = "#000000 #cd3131 #0dbc79 #e5e510 #2472c8 #bc3fbc #11a8cd #e5e5e5".split()
BRIGHT = "#666666 #f14c4c #23d18b #f5f543 #3b8eea #d670d6 #29b8db #ffffff".split()
SGR = re.compile(r"(\x1b\[[0-9;:]*m)")


def color(codes):
    """Returns the color of an SGR sequence after its 38 or 48. Consumes its codes."""
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
    """Applies the codes of an SGR sequence to the style."""
    while codes:
        code = codes.pop(0)
        if code == 0:
            state.clear()
        elif code == 1:
            state["bold"] = True
        elif code == 2:
            state["dim"] = True
        elif code == 22:
            state.pop("bold", None)
            state.pop("dim", None)
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


def svg(screen, columns, rows):
    """Renders a screen captured by tmux with colors as SVG text."""
    width, height = columns * CELL + 2 * MARGIN, rows * LINE + 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" font-family="monospace" font-size="14">']
    out.append(f'<rect width="100%" height="100%" rx="6" fill="{BACK}"/>')
    state = {}
    for row, line in enumerate(screen.split("\n")[:rows]):
        column = 0
        for part in SGR.split(line):
            if part.startswith("\x1b"):
                style(state, [int(code or 0) for code in re.split("[;:]", part[2:-1])])
                continue
            if not part:
                continue
            fg, bg = state.get("fg", FORE), state.get("bg")
            if state.get("reverse"):
                fg, bg = bg or BACK, fg
            x, y = MARGIN + column * CELL, MARGIN + row * LINE
            length = len(part) * CELL
            if bg:
                out.append(f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="{LINE}" fill="{bg}"/>')
            weight = ' font-weight="bold"' if state.get("bold") else ""
            weight += ' opacity="0.6"' if state.get("dim") else ""
            # One element per word, so that columns are aligned in any font.
            for word in re.finditer(r"\S+", part):
                left, text = x + word.start() * CELL, html.escape(word.group())
                out.append(f'<text x="{left:.1f}" y="{y + 14}" fill="{fg}"{weight}>{text}</text>')
            column += len(part)
    return "\n".join(out + ["</svg>\n"])


class Terminal:
    """A private tmux server that runs one program."""

    def __init__(self, folder, home, programs, command, columns, rows):
        self.size = columns, rows
        # Keep the environment of the user out of the picture.
        environment = ["env", "-i", f"HOME={home}", f"PATH={programs}:/usr/bin:/bin", "LANG=C.UTF-8", "TERM=tmux-256color"]
        start = ["-f", "/dev/null", "new-session", "-d", "-s", "shot", "-x", str(columns), "-y", str(rows), "-c", str(folder)]
        self.tmux(*start, *environment, "COLORTERM=truecolor", *command)

    def tmux(self, *words):
        server = ["tmux", "-L", f"pictures{os.getpid()}"]
        return subprocess.run([*server, *words], check=True, capture_output=True, text=True).stdout

    def screen(self):
        return self.tmux("capture-pane", "-p", "-e", "-t", "shot")

    def keys(self, *keys):
        self.tmux("send-keys", "-t", "shot", *keys)

    def wait(self, holds):
        """Waits until the screen contains a text or satisfies a predicate."""
        holds = holds if callable(holds) else lambda text, wanted=holds: wanted in text
        for _ in range(300):
            if holds(SGR.sub("", self.screen())):
                return
            time.sleep(0.05)
        raise SystemExit(f"this never came: {holds}\n{self.screen()}")

    def shot(self, path):
        time.sleep(0.5)  # The screen is drawn in steps.
        path.write_text(svg(self.screen(), *self.size))


@contextlib.contextmanager
def terminal(*arguments):
    shown = Terminal(*arguments)
    try:
        yield shown
    finally:
        shown.tmux("kill-server")
