"""Writes the vectors beside this folder: `python3 Tests/Vectors/generator`. Cases written by hand stay as they are."""

import importlib
import sys

sys.dont_write_bytecode = True
for module in ("id_token_claims", "id_token_forgeries", "id_token_good", "callbacks", "token_answers"):
    importlib.import_module(module)
written = importlib.import_module("writing").written
print(f"{len(written)} cases in {len({path.parent for path in written})} folders")
