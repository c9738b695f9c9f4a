"""One file per case: a head of `name: value` lines, an empty line, the content."""

import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
written = set()


def write(folder, name, content):
    """Writes a file that no other case has."""
    path = ROOT / folder / name
    if path in written:
        raise SystemExit(f"two cases are named {folder}/{name}")
    written.add(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def lines(name, head, colon):
    """The head. A value of None is left out; a list is as many lines."""
    found = []
    for key, value in head:
        for item in value if isinstance(value, list) else [value]:
            if item is not None:
                if "\n" in str(item):
                    raise SystemExit(f"a line break in the head of {name}")
                found.append(f"{key}{colon} {item}".rstrip() if item == "" else f"{key}{colon} {item}")
    return "\n".join(found).encode()


def case(folder, name, head, content):
    """Writes a case."""
    content = content.encode() if isinstance(content, str) else content
    write(folder, f"{name}.txt", lines(name, head, ":") + b"\n\n" + content + b"\n")


def hexadecimal(folder, name, head, content):
    """Writes a case whose content is in hexadecimal, 32 bytes a line; its head has no colons."""
    digits = content.hex()
    rows = "".join(f"{digits[place : place + 64]}\n" for place in range(0, len(digits), 64))
    write(folder, f"{name}.txt", lines(name, head, "") + b"\n\n" + rows.encode())


def keys(folder, name, entries):
    """Writes a key set beside the cases."""
    write(folder, name, (json.dumps({"keys": entries}, indent=1) + "\n").encode())
