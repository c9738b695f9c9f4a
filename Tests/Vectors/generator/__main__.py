"""Writes the vectors: `python3 Tests/Vectors/generator [FOLDER]`, by default beside this folder. Cases written by hand
stay as they are.

    python3 Tests/Vectors/generator --check    says which files are not as they would be written, and writes nothing
"""

import importlib
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
MODULES = ("id_token_claims", "id_token_forgeries", "id_token_good", "callbacks", "token_answers", "sealed_files")
WHOLE = ("sealed-files", "vault-keys")
HOME = pathlib.Path(__file__).resolve().parent.parent


def generate(place):
    writing = importlib.import_module("writing")
    writing.ROOT = place
    for module in MODULES:
        importlib.import_module(module)
    return sorted(path.relative_to(place) for path in writing.written)


def is_same(one, two):
    return two.is_file() and one.read_bytes() == two.read_bytes()


def claimed(folders):
    """The cases in these folders that say by their head, or by the folder, that they come from here."""
    for path in (path for folder in folders for path in (HOME / folder).glob("*.txt")):
        head = path.read_bytes().partition(b"\n\n")[0].split(b"\n")
        if path.parent.name in WHOLE or any(line.startswith(b"rule:") for line in head):
            yield path.relative_to(HOME)


arguments = sys.argv[1:]
if arguments == ["--check"]:
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        cases = generate(place)
        different = [case for case in cases if not is_same(place / case, HOME / case)]
    different += sorted(set(claimed({case.parent for case in cases})) - set(cases))
    for case in different:
        print(f"{case} is not what the generator writes")
    print(f"{len(cases)} files are written, {len(different)} are different")
    raise SystemExit(1 if different else 0)
written = generate(pathlib.Path(arguments[0]).resolve() if arguments else HOME)
print(f"{len(written)} files in {len({path.parent for path in written})} folders")
