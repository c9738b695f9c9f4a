#!/usr/bin/env -S python3 -B
"""Reads the QR codes that `ringback login` prints on a terminal, dark and light, with a real reader: zbar."""

import os
import subprocess
import xml.etree.ElementTree as XML

from harness import Trouble, played, table
from qr_login import screens

BLOCKS = {"█": (1, 1), "▀": (1, 0), "▄": (0, 1), " ": (0, 0)}
# How a terminal's own colours are: (text, background), as grey.
THEMES = {"dark": (200, 30), "light": (40, 240), "black": (255, 0), "white": (0, 255)}


def picture(rows, scale=4):
    """A PGM of rows of grey values."""
    head = f"P5\n{len(rows[0]) * scale} {len(rows) * scale}\n255\n".encode()
    return head + b"".join(bytes(value for value in row for _ in range(scale)) * scale for row in rows)


def read(directory, pictures, inverted):
    """What zbar reads in each of the pictures; None for nothing."""
    names = [os.path.join(directory, f"{index}.pgm") for index in range(len(pictures))]
    for name, content in zip(names, pictures):
        with open(name, "wb") as file:
            file.write(content)
    more = ["-Stest-inverted"] if inverted else []
    done = subprocess.run(["zbarimg", "--quiet", "--xml", "-Sdisable", "-Sqrcode.enable", *more, *names],
                          capture_output=True, stdin=subprocess.DEVNULL)
    # 4: nothing was found in one of them.
    if done.returncode not in (0, 4):
        raise Trouble(f"zbarimg: {done.returncode} {done.stderr.decode(errors='replace')[-500:]}")
    found = {}
    for source in XML.fromstring(done.stdout).iter():
        if source.tag.endswith("source"):
            for data in (one for one in source.iter() if one.tag.endswith("data")):
                found[source.get("href")] = data.text or ""
    return [found.get(name) for name in names]


@played()
def campaign(chosen, report, places):
    directory, counts = places.directory("qr", chosen.keep), []
    for what, text, screen, themes in screens(chosen.bin):
        pictures = [picture(screen.picture(THEMES[theme], BLOCKS)) for theme in themes]
        answers = read(directory, pictures, "inverted" in what)
        for theme, answer in zip(themes, answers):
            report.note(answer == text, f"{what}, {theme} terminal", f"read as {answer!r:.80}, not {text!r:.80}")
        counts.append((what, len(pictures), sum(answer == text for answer in answers)))
    table("read by zbar", ["what", "drawn", "read"], counts)
