#!/usr/bin/env python3
"""Draws QR codes with our encoder, and reads them with a real reader: zbar.

Every version at both levels, full to the last byte; every mask; damage; the drawings themselves, as a terminal or
librsvg shows them; and what `ringback login` truly prints on a terminal, dark and light.
"""

import glob
import os
import random
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as XML

sys.dont_write_bytecode = True
from house import ROOT  # noqa: E402
from qr_login import screens  # noqa: E402
from report import Report, options, progress, table  # noqa: E402
from stage import Trouble  # noqa: E402

# Bytes of text by version, of the standard's table 7: what the encoder takes is held to it.
CAPACITY = {
    "L": [17, 32, 53, 78, 106, 134, 154, 192, 230, 271, 321, 367, 425, 458, 520, 586, 644, 718, 792, 858, 929, 1003,
          1091, 1171, 1273, 1367, 1465, 1528, 1628, 1732, 1840, 1952, 2068, 2188, 2303, 2431, 2563, 2699, 2809, 2953],
    "M": [14, 26, 42, 62, 84, 106, 122, 152, 180, 213, 251, 287, 331, 362, 412, 450, 504, 560, 624, 666, 711, 779, 857,
          911, 997, 1059, 1125, 1190, 1264, 1370, 1452, 1538, 1628, 1722, 1809, 1911, 1989, 2099, 2213, 2331],
}
OTPAUTH = ("otpauth://totp/Example%20Project:ada%40example.org?algorithm=SHA1&digits=6&issuer=Example%20Project"
           "&period=30&secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP")
INKS = ["blackOnWhite", "lightText", "darkText"]
BLOCKS = {"█": (1, 1), "▀": (1, 0), "▄": (0, 1), " ": (0, 0)}
# How a terminal's own colours are: (text, background), as grey.
THEMES = {"dark": (200, 30), "light": (40, 240), "black": (255, 0), "white": (0, 255)}
BORDER = 4


def built():
    """Our encoder as a program, below .build."""
    sources = sorted(glob.glob(os.path.join(ROOT, "Sources/Base/Terminal/QR*.swift")))
    sources.append(os.path.join(ROOT, "Sources/Base/Terminal/Console.swift"))
    main = os.path.join(ROOT, "Campaigns/qr.swift")
    place = os.path.join(ROOT, ".build/qr")
    program = os.path.join(place, "qr")
    os.makedirs(place, exist_ok=True)
    # Top-level code stands in a file of this name.
    if not os.path.exists(program) or any(os.path.getmtime(one) > os.path.getmtime(program) for one in [main, *sources]):
        progress("compiling the encoder")
        shutil.copyfile(main, os.path.join(place, "main.swift"))
        subprocess.run([os.environ.get("SWIFT", "swift") + "c", "-O", "-swift-version", "6", "-module-name", "qr",
                        *sources, os.path.join(place, "main.swift"), "-o", program], check=True)
    return program


class Symbol:
    """What the encoder answers to one line."""

    def __init__(self, lines, text):
        self.text = text
        version, self.level, mask, size = next(lines).split()
        self.version, self.mask, self.size = int(version), int(mask), int(size)
        self.modules = [[digit == "1" for digit in next(lines)] for _ in range(self.size)]
        self.svg = next(lines)
        self.drawings = {ink: [next(lines) for _ in range((self.size + 2 * BORDER + 1) // 2)] for ink in INKS}

    def bordered(self):
        empty = [False] * (self.size + 2 * BORDER)
        side = [False] * BORDER
        return [empty] * BORDER + [side + row + side for row in self.modules] + [empty] * BORDER


def encoded(program, cases):
    """The symbols of (text, version, level, mask), None standing for what is to be chosen."""
    words = ["-" if word is None else str(word) for case in cases for word in [case[0].encode().hex(), *case[1:]]]
    lines = "".join(" ".join(words[start:start + 4]) + "\n" for start in range(0, len(words), 4))
    done = subprocess.run([program], input=lines.encode(), capture_output=True)
    if done.returncode:
        raise Trouble(f"the encoder: {done.returncode} {done.stderr.decode()[-500:]}")
    answer = iter(done.stdout.decode().splitlines())
    return [Symbol(answer, case[0]) for case in cases]


def picture(rows, scale=4):
    """A PGM of rows of grey values."""
    head = f"P5\n{len(rows[0]) * scale} {len(rows) * scale}\n255\n".encode()
    return head + b"".join(bytes(value for value in row for _ in range(scale)) * scale for row in rows)


def of_modules(rows):
    return picture([[0 if dark else 255 for dark in row] for row in rows])


def of_terminal(lines, theme):
    """What a terminal shows, with two empty places around it."""
    text, ground = THEMES[theme]
    rows = []
    for line in lines:
        colors = (text, ground)
        if line.startswith("\x1b[38;5;16;48;5;231m") and line.endswith("\x1b[0m"):
            colors, line = (0, 255), line[len("\x1b[38;5;16;48;5;231m"):-len("\x1b[0m")]
        for half in range(2):
            rows.append([ground] * 2 + [colors[0] if BLOCKS[place][half] else colors[1] for place in line] + [ground] * 2)
    edge = [[ground] * len(rows[0])] * 2
    return picture(edge + rows + edge)


def read(directory, pictures, inverted=False):
    """What zbar reads in each of the pictures; None for nothing."""
    more = ["-Stest-inverted"] if inverted else []
    found = {}
    names = []
    for index, (suffix, content) in enumerate(pictures):
        names.append(os.path.join(directory, f"{index}.{suffix}"))
        with open(names[-1], "wb") as file:
            file.write(content)
    for start in range(0, len(names), 40):
        part = names[start:start + 40]
        done = subprocess.run(["zbarimg", "--quiet", "--xml", "-Sdisable", "-Sqrcode.enable", *more, *part],
                              capture_output=True, stdin=subprocess.DEVNULL)
        # 4: nothing was found in one of them.
        if done.returncode not in (0, 4):
            raise Trouble(f"zbarimg: {done.returncode} {done.stderr.decode(errors='replace')[-500:]}")
        for source in XML.fromstring(done.stdout).iter():
            if not source.tag.endswith("source"):
                continue
            for data in (one for one in source.iter() if one.tag.endswith("data")):
                name = source.get("href")
                # What is more than ASCII is spoilt in zbarimg's XML.
                found[name] = plain(name) if data.get("format") == "base64" else data.text or ""
    for name in names:
        os.unlink(name)
    return [found.get(name) for name in names]


def plain(name):
    done = subprocess.run(["zbarimg", "--quiet", "--raw", "-Sdisable", "-Sqrcode.enable", name], check=True,
                          capture_output=True, stdin=subprocess.DEVNULL)
    return done.stdout.decode(errors="replace").removesuffix("\n")


def sample(count):
    """A text of so many bytes, never the same twice, as an enrolment's is."""
    random.seed(count)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567abcdefghijklmnopqrstuvwxyz%&=?/:"
    return (OTPAUTH + "".join(random.choice(alphabet) for _ in range(count)))[-count:]


def spoilt(symbol, count):
    """The modules with so many squares of 2 by 2 turned in the lower right, where data is."""
    random.seed(count)
    rows = [list(row) for row in symbol.bordered()]
    for _ in range(count):
        column, row = (random.randrange(BORDER + 10, BORDER + symbol.size - 10) for _ in range(2))
        for right, down in [(0, 0), (0, 1), (1, 0), (1, 1)]:
            rows[row + down][column + right] = not rows[row + down][column + right]
    return rows


def main():
    chosen = options(__doc__.splitlines()[0])
    report = Report()
    directory = tempfile.mkdtemp(prefix="rb-qr-")
    counts = []

    def expect(name, symbols, pictures, wanted=None):
        """Each picture is read as its symbol's text; or as nothing, where that is wanted."""
        answers = read(directory, pictures)
        for symbol, answer in zip(symbols, answers):
            text = symbol.text if wanted is None else wanted
            report.note(answer == text if wanted is None else answer is None,
                        f"{name}: {symbol.version}-{symbol.level} mask {symbol.mask} of {len(symbol.text)}",
                        f"read as {answer!r:.60}, not {text!r:.60}")
        counts.append((name, len(pictures), sum(answer is not None for answer in answers)))

    try:
        program = built()
        versions = range(1, 41, 6 if chosen.short else 1)
        full = [(sample(CAPACITY[level][version - 1]), version, level, None) for version in versions for level in "LM"]
        symbols = encoded(program, full)
        expect("full symbols", symbols, [("pgm", of_modules(one.bordered())) for one in symbols])

        masks = [(sample(n), version, level, mask) for mask in range(8)
                 for n, version, level in [(9, 1, "L"), (60, 4, "M"), (120, 7, "M"), (400, 14, "L")]]
        symbols = encoded(program, masks)
        report.note([one.mask for one in symbols] == [case[3] for case in masks], "masks", "are not those asked for")
        expect("each mask", symbols, [("pgm", of_modules(one.bordered())) for one in symbols])

        lengths = sorted({length for level in "LM" for length in CAPACITY[level][:10]})
        texts = [OTPAUTH, "https://example.org/device?user_code=WDJB-MJHT", "x", "Привет, мир", "naïve café ☕", "é" * 8 + "a",
                 "é" * 125 + "a", "é" * 135]
        texts += [sample(length + more) for length in lengths for more in (0, 1)]
        symbols = encoded(program, [(text, None, None, None) for text in texts])
        for one in symbols:
            # A text that is not ASCII is preceded by what says so, which takes the room of one byte and a half.
            size = len(one.text.encode()) + (0 if one.text.isascii() else 1)
            fitting = next(index for index, most in enumerate(CAPACITY["L"]) if most >= size)
            level = "M" if CAPACITY["M"][fitting] >= size else "L"
            report.note((one.version, one.level) == (fitting + 1, level), f"the version for {size} bytes",
                        f"{one.version}-{one.level}, not {fitting + 1}-{level}")
        expect("chosen versions", symbols, [("pgm", of_modules(one.bordered())) for one in symbols])

        some = symbols[:5]
        for ink, theme in [("blackOnWhite", theme) for theme in THEMES] + [
                ("lightText", "dark"), ("lightText", "black"), ("darkText", "light"), ("darkText", "white")]:
            expect(f"{ink}, {theme} terminal", some, [("pgm", of_terminal(one.drawings[ink], theme)) for one in some])
        expect("SVG", some, [("png", drawn(one.svg)) for one in some])

        for what, text, screen, themes in screens(chosen.bin):
            pictures = [("pgm", picture(screen.picture(THEMES[theme], BLOCKS))) for theme in themes]
            answers = read(directory, pictures, "inverted" in what)
            for theme, answer in zip(themes, answers):
                report.note(answer == text, f"{what}, {theme} terminal", f"read as {answer!r:.80}, not {text!r:.80}")
            counts.append((what, len(pictures), sum(answer == text for answer in answers)))

        big = encoded(program, [(sample(200), 12, "M", None)] * 5 + [(sample(60), 4, "M", None)])
        expect("slightly spoilt", big[:5], [("pgm", of_modules(spoilt(one, 6 + n))) for n, one in enumerate(big[:5])])
        # Whether the reader would notice a wrong symbol.
        expect("badly spoilt", big[:1], [("pgm", of_modules(spoilt(big[0], 400)))], wanted="")
        table("read by zbar", ["what", "drawn", "read"], counts)
    except (Trouble, OSError, subprocess.SubprocessError, StopIteration, XML.ParseError) as trouble:
        report.note(False, "the stage", f"{type(trouble).__name__} {trouble}")
    finally:
        if not chosen.keep:
            shutil.rmtree(directory, ignore_errors=True)
    return report.finish()


def drawn(svg):
    done = subprocess.run(["rsvg-convert", "--zoom", "4"], input=svg.encode(), capture_output=True, check=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
