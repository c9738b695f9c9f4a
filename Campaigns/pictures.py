#!/usr/bin/env -S python3 -B
"""Makes the picture of what the demo shows on a terminal, from a real run of it (SVG, as docs/demo.svg).

    Campaigns/pictures.py --bin DIRECTORY [--out DIRECTORY]

The demo's picture plays once: each line appears when the demo printed it. Programs that play no SVG animations show all
lines.
"""

import html
import os
import re
import time

from harness import played, write
from qr import on_terminal, pieces

COLUMNS, ROWS = 100, 60
LIMIT = 120  # seconds
COLOURS = {31: "#f2777a", 32: "#99cc99", 33: "#ffcc66", 34: "#6699cc", 35: "#cc99cc", 36: "#66cccc"}
ESCAPE = re.compile(r"\x1b(?:\[([0-9;?]*)([A-Za-z])|\][^\x07]*\x07|.)")


def record(program, home):
    """The demo's lines with the seconds after which each was complete, and its exit status."""
    environment = {
        "PATH": os.path.dirname(program) + ":/usr/bin:/bin", "HOME": home, "TERM": "xterm-256color",
        "LANG": "C.UTF-8", "XDG_RUNTIME_DIR": home,
    }
    began, rest, lines = time.monotonic(), "", []
    with on_terminal([program, "demo"], ROWS, COLUMNS, env=environment, cwd=home) as (demo, screen):
        for piece in pieces(screen, LIMIT):
            rest += piece.decode("utf-8", "replace")
            *whole, rest = rest.split("\n")
            lines += [(time.monotonic() - began, line.rstrip("\r")) for line in whole]
        if rest.strip():
            lines.append((time.monotonic() - began, rest))
        return lines, demo.wait(timeout=10)


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


@played(out=(".build/pictures", "where the picture goes"))
def campaign(chosen, report, places):
    home = places.directory("pictures", chosen.keep)
    lines, status = record(os.path.join(os.path.abspath(chosen.bin), "ringback"), home)
    report.note(status == 0 and len(lines) >= 5, "the demo", f"it ended with status {status} after {len(lines)} lines")
    os.makedirs(chosen.out, exist_ok=True)
    print(write(os.path.join(chosen.out, "demo.svg"), picture(lines), 0o644))
