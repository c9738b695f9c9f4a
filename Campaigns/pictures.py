#!/usr/bin/env -S python3 -B
"""Makes the picture of what the demo shows on a terminal, from a real run of it (SVG, as docs/demo.svg).

    Campaigns/pictures.py --bin DIRECTORY [--out DIRECTORY]

The demo's picture plays once: each line appears when the demo printed it. Programs that play no SVG animations show all
lines.
"""

import argparse
import fcntl
import html
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time

COLUMNS, ROWS = 100, 60
LIMIT = 120  # seconds
COLOURS = {31: "#f2777a", 32: "#99cc99", 33: "#ffcc66", 34: "#6699cc", 35: "#cc99cc", 36: "#66cccc"}
ESCAPE = re.compile(r"\x1b(?:\[([0-9;?]*)([A-Za-z])|\][^\x07]*\x07|.)")


def record(program, home):
    """The demo's lines with the seconds after which each was complete, and its exit status."""
    keyboard, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {
        "PATH": os.path.dirname(program) + ":/usr/bin:/bin", "HOME": home, "TERM": "xterm-256color",
        "LANG": "C.UTF-8", "XDG_RUNTIME_DIR": home,
    }
    demo = subprocess.Popen(
        [program, "demo"], stdin=terminal, stdout=terminal, stderr=terminal, env=environment, cwd=home)
    os.close(terminal)
    began, rest, lines = time.monotonic(), "", []
    try:
        while time.monotonic() - began < LIMIT:
            if not select.select([keyboard], [], [], 1)[0]:
                continue
            try:
                piece = os.read(keyboard, 65_536)
            except OSError:  # the terminal's last program has ended
                break
            if not piece:
                break
            rest += piece.decode("utf-8", "replace")
            *whole, rest = rest.split("\n")
            lines += [(time.monotonic() - began, line.rstrip("\r")) for line in whole]
        if rest.strip():
            lines.append((time.monotonic() - began, rest))
        return lines, demo.wait(timeout=10)
    finally:
        if demo.poll() is None:
            demo.kill()
            demo.wait()
        os.close(keyboard)


def spans(line):
    """The line as (text, SVG attributes), after what its escape sequences say."""
    # What a carriage return overwrites is not seen.
    line = line.split("\r")[-1]
    place, style = 0, {}
    for match in ESCAPE.finditer(line):
        if match.start() > place:
            yield line[place:match.start()], dict(style)
        place = match.end()
        if match.group(2) != "m":
            continue
        for code in (int(code or 0) for code in match.group(1).split(";")):
            if code == 0:
                style = {}
            elif code == 1:
                style["font-weight"] = "bold"
            elif code == 2:
                style["fill-opacity"] = "0.6"
            elif code in COLOURS:
                style["fill"] = COLOURS[code]
    if place < len(line):
        yield line[place:], style


def picture(lines):
    height, width = 20, 8.6
    longest = max(len("".join(part for part, _ in spans(line))) for _, line in lines)
    box = (max(COLUMNS, longest) * width + 40, len(lines) * height + 60)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {box[0]:.0f} {box[1]:.0f}" role="img" '
        'aria-label="ringback demo on a terminal" xml:space="preserve" font-family="DejaVu Sans Mono, monospace" '
        'font-size="14" '
        'fill="#d3d0c8">',
        '<rect width="100%" height="100%" rx="8" fill="#2d2d2d"/>',
        '<text x="20" y="30" fill="#99cc99">$ ringback demo</text>',
    ]
    for number, (seconds, line) in enumerate(lines):
        text = "".join(
            "<tspan {}>{}</tspan>".format(
                " ".join(f'{name}="{value}"' for name, value in style.items()),
                html.escape(part).replace(" ", "\u00a0"))
            for part, style in spans(line))
        out.append(
            f'<text x="20" y="{30 + (number + 1) * height}">{text}'
            f'<set attributeName="visibility" to="hidden" begin="0s" end="{seconds + 0.01:.2f}s"/></text>')
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", required=True, help="where the executables are")
    parser.add_argument("--out", default=".build/pictures", help="where the pictures go")
    options = parser.parse_args()
    program = os.path.join(os.path.abspath(options.bin), "ringback")
    with tempfile.TemporaryDirectory(prefix="rb-") as home:
        lines, status = record(program, home)
    if status != 0 or len(lines) < 5:
        sys.exit(f"pictures: the demo ended with status {status} after {len(lines)} lines")
    os.makedirs(options.out, exist_ok=True)
    path = os.path.join(options.out, "demo.svg")
    with open(path, "w", encoding="utf-8") as file:
        file.write(picture(lines))
    print(path)


if __name__ == "__main__":
    main()
