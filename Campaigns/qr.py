#!/usr/bin/env -S python3 -B
"""Reads the QR codes that `ringback login` prints on a terminal, dark and light, with a real reader: zbar.

A terminal's stream is played into a grid of cells, as a terminal does, and rendered as terminals of all colours show it;
letters become grey specks, since only their places matter.
"""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import xml.etree.ElementTree as XML

from harness import Trouble, played, table, write
from house import House

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
        write(name, content)
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


BOUND = 60
# What the person has: (name, environment, the themes it is looked at in). Where nothing tells how the terminal looks,
# light text is drawn for; on a light one it is then inverted, and readers that take this, as many cameras do, read it.
TERMINALS = [
    ("colour", {"TERM": "xterm-256color"}, ["dark", "light", "black", "white"]),
    ("no colour, dark", {"TERM": "xterm", "NO_COLOR": "1", "COLORFGBG": "15;0"}, ["dark", "black"]),
    ("no colour, light", {"TERM": "xterm", "NO_COLOR": "1", "COLORFGBG": "0;15"}, ["light", "white"]),
    ("no colour, not told", {"TERM": "xterm", "NO_COLOR": "1"}, ["dark", "black"]),
    ("dumb, not told", {"TERM": "dumb"}, ["dark", "black"]),
    ("dumb, dark", {"TERM": "dumb", "COLORFGBG": "15;0"}, ["dark", "black"]),
    ("dumb, light", {"TERM": "dumb", "COLORFGBG": "0;15"}, ["light", "white"]),
    ("ASCII", {"TERM": "xterm-256color", "LC_ALL": "C"}, ["dark", "light", "black", "white"]),
    ("ASCII, no colour, dark", {"TERM": "xterm", "NO_COLOR": "1", "LC_ALL": "C", "COLORFGBG": "15;0"}, ["dark", "black"]),
    ("ASCII, no colour, light", {"TERM": "xterm", "NO_COLOR": "1", "LC_ALL": "C", "COLORFGBG": "0;15"}, ["light", "white"]),
    ("no colour, inverted", {"TERM": "xterm", "NO_COLOR": "1"}, ["light", "white"]),
    ("dumb, inverted", {"TERM": "dumb"}, ["light", "white"]),
]
# What it is asked for: arguments, what the flow says that is to be read, what comes after the drawing, columns.
VERBS = [
    (["login", "work", "--method", "device"], "verification_uri_complete", "Enter no code", 80),
    (["login", "work", "--no-browser"], "authorization_url", "Paste the callback URL", 120),
]
SHADES = {"16": 0, "231": 255}


class Screen:
    """A terminal that remembers everything, as wide as it says."""

    def __init__(self, columns):
        self.columns = columns
        self.rows = [{}]
        self.column = 0
        self.colors = (None, None)

    def play(self, text):
        """SGR in the few forms that are used, carriage return, line feed, erase to the end of the line."""
        for escape, character in re.findall("\x1b\\[([0-9;]*[A-Za-z])|(.)", text, re.DOTALL):
            if escape.endswith("m"):
                words = escape[:-1].split(";")
                if words[:2] == ["38", "5"] and words[3:5] == ["48", "5"]:
                    self.colors = (SHADES[words[2]], SHADES[words[5]])
                elif words in (["0"], [""]):
                    self.colors = (None, None)
            elif escape == "K":
                self.rows[-1] = {place: cell for place, cell in self.rows[-1].items() if place < self.column}
            elif character == "\r":
                self.column = 0
            elif character == "\n":
                self.rows.append({})
            elif character:
                if self.column == self.columns:
                    self.rows.append({})
                    self.column = 0
                self.rows[-1][self.column] = (character, self.colors)
                self.column += 1

    def picture(self, theme, blocks):
        """Rows of grey values, two for a line."""
        text, ground = theme
        rows = []
        for cells in self.rows:
            for half in range(2):
                row = []
                for place in range(self.columns):
                    character, (ink, paper) = cells.get(place, (" ", (None, None)))
                    ink, paper = text if ink is None else ink, ground if paper is None else paper
                    mark = blocks.get(character)
                    row.append((ink + paper) // 2 if mark is None else ink if mark[half] else paper)
                rows.append(row)
        edge = [[ground] * self.columns] * 2
        return edge + rows + edge


@contextlib.contextmanager
def on_terminal(words, rows, columns, **more):
    """A program on a terminal of this size, which is killed at the end: the program, and what its screen is read from."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    program = subprocess.Popen(words, stdin=terminal, stdout=terminal, stderr=terminal, **more)
    os.close(terminal)
    try:
        yield program, screen
    finally:
        program.kill()
        program.wait()
        os.close(screen)


def pieces(screen, seconds):
    """What a terminal is sent, until its last program has ended or the time is up."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if select.select([screen], [], [], 1)[0]:
            try:
                yield os.read(screen, 65_536)
            except OSError:
                return


def shown(house, arguments, environment, columns, last):
    """What a terminal was sent, until `last` stood there; the program is then interrupted."""
    environment = house.environment | {"LANG": "C.UTF-8"} | environment
    text, rows = b"", 60 if columns < 240 else 120
    with on_terminal([house.program(), *arguments], rows, columns, env=environment) as (program, screen):
        for piece in pieces(screen, BOUND):
            text += piece
            if last.encode() in text:
                break
        else:
            raise Trouble(f"{arguments} showed {text[-300:]!r}")
        flows = house.api("GET", "/v1/flows")[1]["flows"]
        program.send_signal(signal.SIGINT)
        program.wait(BOUND)
    return text.decode(), next(flow for flow in flows if flow["status"] == "pending")


def screens(binaries):
    """(what, the text that a camera is to read, the screen, the themes) for every terminal and verb."""
    house = House(binaries, shimmed=False)
    try:
        house.configure()
        house.start()
        for arguments, member, last, columns in VERBS:
            for name, environment, themes in TERMINALS:
                # A character is a module, and not two of them.
                width = 240 if "ASCII" in name else columns
                text, flow = shown(house, arguments, environment, width, last)
                screen = Screen(width)
                screen.play(text)
                yield f"{' '.join(arguments)} ({name})", flow[member], screen, themes
    finally:
        house.close()


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
