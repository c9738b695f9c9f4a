"""One file per case: a head of `name: value` lines, an empty line, the content."""

import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
written = set()


def case(folder, name, head, content):
    """Writes a case. A value of None is left out; a list is as many lines."""
    path = ROOT / folder / f"{name}.txt"
    if path in written:
        raise SystemExit(f"two cases are named {folder}/{name}")
    written.add(path)
    lines = []
    for key, value in head:
        for item in value if isinstance(value, list) else [value]:
            if item is not None:
                if "\n" in str(item):
                    raise SystemExit(f"a line break in the head of {name}")
                lines.append(f"{key}: {item}".rstrip() if item == "" else f"{key}: {item}")
    content = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(exist_ok=True)
    path.write_bytes("\n".join(lines).encode() + b"\n\n" + content + b"\n")


def keys(folder, name, entries):
    """Writes a key set beside the cases."""
    path = ROOT / folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"keys": entries}, indent=1) + "\n")
