"""The packages of the same commit once more, in another folder: they must be the same byte for byte."""

import filecmp
import glob
import os
import shutil

from harness import ROOT, output, run
from package_contents import make

# What must not be seen in a package: who made it, where, when and in which language.
OTHERWISE = {"TZ": "Asia/Kathmandu", "LC_ALL": "ru_RU.UTF-8", "LANGUAGE": "ru", "COLUMNS": "40", "HOME": "/nonexistent"}
PROGRAMS = ["ringback", "ringbackd", "ringback-relay", "ringback-sandbox"]


def another_checkout(place):
    """A clone with what is changed in this checkout, and with what is known here of the dependencies."""
    output("git", "clone", "--quiet", "--no-hardlinks", ROOT, place, umask=0o077)
    changed = output("git", "diff", "HEAD", "--name-only", "-z", cwd=ROOT)
    changed += output("git", "ls-files", "--others", "--exclude-standard", "-z", cwd=ROOT)
    for name in filter(None, [*changed.split("\0"), "Package.resolved"]):
        source, target = os.path.join(ROOT, name), os.path.join(place, name)
        if os.path.exists(source):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(source, target)
        elif os.path.exists(target):
            os.unlink(target)
    return place


def packages(directory):
    """By their names, the tarball's checksum too."""
    return {os.path.basename(path): path for kind in ["deb", "tar.xz", "sha256"]
            for path in glob.glob(os.path.join(directory, "*." + kind))}


def expect_same(report, what, place, binaries, directory, **variables):
    """The packages that the other checkout makes of its executables are those in the directory."""
    ones, there = packages(directory), place + "-packages"
    os.mkdir(there)
    for script in ["deb", "dist"]:
        make(script, binaries, there, place, **variables)
    others = packages(there)
    report.note(len(ones) == 4 and set(ones) == set(others), f"{what}: the same packages are made", f"{ones} {others}")
    for name in sorted(set(ones) & set(others)):
        report.note(filecmp.cmp(ones[name], others[name], shallow=False), f"{what}: {name} is the same byte for byte",
                    f"compare it with {others[name]} (--keep leaves both)")


def try_again(report, binaries, directory, **variables):
    """The same executables, in a folder with other modes and older files, by somebody of another place and language."""
    place = another_checkout(os.path.join(directory, "again", "another-folder"))
    for at, _, names in os.walk(place):
        if ".git" not in at.split(os.sep):
            for name in names:
                os.utime(os.path.join(at, name), (1_000_000_000, 1_000_000_000), follow_symlinks=False)
    os.makedirs(os.path.join(place, ".build"))
    os.symlink(os.path.join(ROOT, ".build/checkouts"), os.path.join(place, ".build/checkouts"))
    expect_same(report, "packed in another folder", place, binaries, directory, umask=0o077, **OTHERWISE, **variables)


def try_rebuild(report, binaries, directory, **variables):
    """The executables too, built anew in another folder, which takes as long as a first release build."""
    place = another_checkout(os.path.join(directory, "rebuild", "another", "folder"))
    built = output(os.path.join(place, "Scripts/release"), timeout=3_600).strip()
    for name in PROGRAMS:
        done = run("cmp", os.path.join(binaries, name), os.path.join(built, name))
        report.note(done.returncode == 0, f"built in another folder: {name} is the same byte for byte", done)
    expect_same(report, "built in another folder", place, built, directory, **variables)
