"""Programs of PyPI, in a virtual environment of their own below .build."""

import os
import shutil
import subprocess

from harness import ROOT, progress, read, write


def installed(name, *packages):
    """The environment's directory of programs, with exactly these packages."""
    place = os.path.join(ROOT, f".build/{name}-venv")
    mark, wanted = os.path.join(place, "installed.txt"), "\n".join(packages)
    if read(mark) != wanted:
        progress(f"installing {', '.join(packages)} below .build/{name}-venv")
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run(["python3", "-m", "venv", place], check=True)
        pip = [os.path.join(place, "bin/pip"), "install", "--quiet", "--disable-pip-version-check", *packages]
        subprocess.run(pip, check=True)
        write(mark, wanted)
    return os.path.join(place, "bin")
