"""What is in the package and in the tarball: the files, what the package asks for, and what its scripts would do."""

import glob
import os
import re
import shutil

from harness import ROOT, output, read, run, write

DOC = "usr/share/doc/ringback/"
# Debian's own places for what `make install` puts elsewhere, and what its tools make of files.
MOVED = {"usr/share/zsh/site-functions/_ringback": "usr/share/zsh/vendor-completions/_ringback",
         "usr/share/ringback/ringbackd.desktop": "etc/xdg/autostart/ringbackd.desktop"}
NEEDED_DOCUMENTS = {DOC + name for name in [
    "copyright", "changelog.gz", "changelog.Debian.gz", "README.md", "SECURITY.md", "sbom.spdx.json.gz",
    "third-party.txt.gz", "examples/ringback.mjs", "examples/profile.mjs", "examples/phone.mjs"]}
PYTHON = "usr/lib/python3/dist-packages/ringback"
PYTHON_DOCUMENTS = {"usr/share/doc/python3-ringback/" + name for name in [
    "README.md", "copyright", "changelog.gz", "changelog.Debian.gz", "examples/profile.py", "examples/phone.py"]}
# In lib/ringback, for who puts that into a PATH, and for GIT_ASKPASS.
NAMES = ["keyring", "oidc-token", "ringback-askpass"]
LICENCES = ["Apache License", "Runtime Library Exception", "GNU LESSER GENERAL PUBLIC LICENSE", "The ServiceLifecycle Project"]


def make(script, binaries, directory, checkout=ROOT, umask=-1, **variables):
    """A package of the executables; its path."""
    return output(os.path.join(checkout, "Scripts", script), binaries, directory, umask=umask,
                  env=os.environ | variables).strip()


def installed(binaries, directory):
    """The list of files by Scripts/install itself."""
    root = os.path.join(directory, "by-make-install")
    output(os.path.join(ROOT, "Scripts/install"), "install", binaries, env=os.environ | {
        "DESTDIR": root, "PREFIX": "/usr", "UNITDIR": "/usr/lib/systemd/user", "INSTALL_STRIP": ""})
    return {os.path.relpath(os.path.join(place, name), root) for place, _, names in os.walk(root) for name in names}


# Who packages it, for the programs of Debian.
PACKAGER = {"DEBFULLNAME": "A Packager", "DEBEMAIL": "packages@example.org"}


def check_package(report, package, binaries, directory):
    maintainer = run("dpkg-deb", "-f", package, "Maintainer").stdout.strip()
    report.note(maintainer == "A Packager <packages@example.org>", "the maintainer is who packages it", maintainer)
    place = os.path.join(directory, "contents")
    run("dpkg-deb", "-R", package, place)
    files = {os.path.relpath(os.path.join(at, name), place) for at, _, names in os.walk(place) for name in names}
    files = {name for name in files if not name.startswith("DEBIAN/")}
    wanted = set()
    for name in installed(binaries, directory):
        name = MOVED.get(name, name)
        wanted.add(name + ".gz" if "/man/" in name else name)
    documents = {name for name in files if name.startswith(DOC) and not name.startswith(DOC + "docs/")}
    others = {name for name in files if not name.startswith(DOC)} - {"usr/share/lintian/overrides/ringback"}
    report.note(others == wanted, "the package has the files of make install", sorted(others ^ wanted))
    report.note(documents == NEEDED_DOCUMENTS, "and its documents", sorted(documents ^ NEEDED_DOCUMENTS))
    texts = run("gzip", "-dc", os.path.join(place, DOC, "third-party.txt.gz")).stdout
    report.note(all(each in texts for each in LICENCES), "licences of Swift, its packages and the C library", len(texts))
    # Owner, mode: root's, and nobody else writes; no program has another user's rights.
    listing = run("dpkg-deb", "-c", package).stdout.splitlines()
    modes = {(line.split()[0], line.split()[1]) for line in listing}
    allowed = {("drwxr-xr-x", "root/root"), ("-rwxr-xr-x", "root/root"), ("-rw-r--r--", "root/root"),
               ("lrwxrwxrwx", "root/root")}
    report.note(modes and modes <= allowed, "owners and modes", modes - allowed)
    check_names(report, os.path.join(place, "usr"), "the package")
    check_paths(report, place, "the package")
    check_paths(report, os.path.join(directory, "by-make-install"), "the executables with their symbols")
    scripts = {name for name in os.listdir(os.path.join(place, "DEBIAN"))} - {"control", "md5sums", "conffiles"}
    report.note(scripts == {"postinst", "postrm"}, "scripts of the package", scripts)
    commands = "".join(read(os.path.join(place, "DEBIAN", name)) for name in scripts)
    # Neither a comment nor a text that is printed does anything.
    commands = re.sub(r"(?m)^#.*$|^\s*echo .*$", "", commands)
    starts = re.findall(r"systemctl|deb-systemd-invoke|restart|kill|adduser|update-rc", commands)
    report.note(not starts, "which start and restart nothing", starts)
    needs = run("dpkg-deb", "-f", package, "Depends").stdout.strip().split(", ")
    report.note("libcurl4t64 | libcurl4" in needs and "libc6 (>= 2.36)" in needs, "dependencies", needs)
    sizes = [f"{name} {os.path.getsize(os.path.join(place, 'usr/bin', name)) / 1e6:.1f} MB"
             for name in sorted(os.listdir(os.path.join(place, "usr/bin")))]
    print(f"package {os.path.getsize(package) / 1e6:.1f} MB: {', '.join(sizes)}", flush=True)


def check_python_package(report, package, directory):
    """The package python3-ringback, which is made beside the other one: what is in it, and that Debian's Python takes it."""
    [package] = glob.glob(os.path.join(os.path.dirname(package), "python3-ringback_*_all.deb"))
    place = os.path.join(directory, "python-contents")
    run("dpkg-deb", "-R", package, place)
    files = {os.path.relpath(os.path.join(at, name), place) for at, _, names in os.walk(place) for name in names}
    source = os.path.join(ROOT, "Clients/python/src/ringback")
    wanted = {f"{PYTHON}/{name}" for name in os.listdir(source) if name.endswith((".py", "py.typed"))}
    wanted |= PYTHON_DOCUMENTS | {f"DEBIAN/{name}" for name in ["control", "md5sums", "postinst", "prerm"]}
    others = {name for name in files if ".dist-info/" not in name}
    report.note(others == wanted, "python3-ringback has the modules of the checkout", sorted(others ^ wanted))
    check_paths(report, place, "python3-ringback")
    said = run("/usr/bin/python3", "-B", "-c", "import importlib.metadata as found, ringback\n"
               "print(ringback.__file__, found.version('ringback'), found.entry_points(group='keyring.backends'))",
               cwd="/", env={"PYTHONPATH": os.path.join(place, os.path.dirname(PYTHON))})
    report.note(said.stdout.startswith(f"{place}/{PYTHON}/__init__.py 0.1.0 ") and "ringback.keyring_backend" in said.stdout,
                "which Debian's Python finds, with its version and its backend for keyring", said)


def check_names(report, prefix, what):
    """The names of other programs lead to ringback, and are in no directory where a shell looks."""
    found = {name: os.readlink(os.path.join(at, name)) for at, _, names in os.walk(prefix) for name in names
             if os.path.islink(os.path.join(at, name))}
    report.note(found == dict.fromkeys(NAMES, "../../bin/ringback"), f"the names of other programs in {what}", found)
    report.note(all(os.path.samefile(os.path.join(prefix, "lib/ringback", name), os.path.join(prefix, "bin/ringback"))
                    for name in found), "they are in lib/ringback alone, and lead to ringback", found)


def check_paths(report, place, what):
    done = run(os.path.join(ROOT, "Scripts/no-build-paths"), place)
    report.note(done.returncode == 0, f"no path of the machine that built it is in {what}", done.stderr)


def check_lintian(report, package):
    if shutil.which("lintian") is None:
        report.note(False, "lintian", "it is not installed: run Scripts/needs packages")
        return
    done = run("lintian", "--allow-root", "--fail-on=error,warning", package)
    complaints = [line for line in done.stdout.splitlines() if line[:2] in ("E:", "W:")]
    report.note(done.returncode == 0 and not complaints, "lintian has no complaint", f"{complaints} {done.stderr}")


def check_tarball(report, path, directory):
    """The tarball installs, refuses a machine that is too old and a file that was changed, and takes itself away."""
    place = os.path.join(directory, "unpacked")
    os.mkdir(place)
    run("tar", "--no-same-owner", "-C", place, "-xf", path)
    [name] = os.listdir(place)
    top, prefix = os.path.join(place, name), os.path.join(directory, "prefix")
    check_paths(report, top, "the tarball")
    done = run("sha256sum", "--check", "--quiet", os.path.basename(path) + ".sha256", cwd=directory)
    report.note(done.returncode == 0, "the tarball's checksum", done.stderr)
    for number, word in [("glibc 2.31", "glibc 2.31"), ("musl 1.2", "is not glibc")]:
        tools = os.path.join(directory, "tools")
        os.makedirs(tools, exist_ok=True)
        write(os.path.join(tools, "getconf"), f"#!/bin/sh\necho {number}\n", 0o755)
        done = run(top + "/install", "--prefix", prefix, env=os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"})
        report.note(done.returncode == 1 and word in done.stderr and "2.36" in done.stderr and not
                    os.path.exists(prefix), f"a machine with {number} is refused in words", done)
    done = run(top + "/install", "--prefix", prefix)
    report.note(done.returncode == 0, "the tarball installs", done)
    unit = os.path.join(prefix, "lib/systemd/user/ringback.service")
    report.note(os.path.exists(unit) and f"ExecStart={prefix}/bin/ringbackd\n" in open(unit).read(),
                "its unit names the daemon that was installed")
    check_names(report, prefix, "what it installed")
    said = run(os.path.join(prefix, "lib/ringback/oidc-token"), "--version")
    report.note("oidc-token of ringback" in said.stdout, "which answers by such a name", said)
    said = run(os.path.join(prefix, "bin/ringback"), "--version")
    report.note(said.returncode == 0, "what it installed starts", said)
    check_old_libc(report, os.path.join(prefix, "bin"), directory)
    done = run(os.path.join(prefix, "share/ringback/install"), "--undo", "--prefix", prefix)
    left = [name for _, _, names in os.walk(prefix) for name in names]
    report.note(done.returncode == 0 and not left, "and is taken away again", f"{left} {done}")
    with open(os.path.join(top, "bin/ringback-sandbox"), "ab") as file:
        file.write(b"x")
    done = run(top + "/install", "--prefix", prefix)
    report.note(done.returncode == 1 and "nothing was installed" in done.stderr and not
                [name for _, _, names in os.walk(prefix) for name in names], "a changed file is refused", done)


def check_old_libc(report, programs, directory):
    """`ringback` starts where the C library is too old for `ringbackd`, and says so. The loader is shown a library that
    has the name of one of glibc's and the versions of an old one."""
    place = os.path.join(directory, "old-libc")
    os.mkdir(place)
    write(os.path.join(place, "versions"), "GLIBC_2.2.5 { *; };\n")
    made = run("cc", "-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libm.so.6", "-Wl,--version-script=versions", "-o",
               "libm.so.6", "-x", "c", os.devnull, cwd=place)
    environment = os.environ | {"LD_LIBRARY_PATH": place, "HOME": place, "XDG_RUNTIME_DIR": place}
    refused = run(os.path.join(programs, "ringbackd"), "--version", env=environment)
    report.note(made.returncode == 0 and refused.returncode != 0 and "`GLIBC_2." in refused.stderr,
                "the loader refuses a daemon for which the C library is too old", (made, refused))
    done = run(os.path.join(programs, "ringback"), "doctor", env=environment)
    report.note(done.returncode == 1 and "ringbackd cannot start: it needs glibc 2.36 or newer" in done.stdout,
                "and ringback doctor says which one it needs", done)


COMMIT = re.compile(rb"commit ([0-9a-f]{9})")


def commit_of(path):
    """The commit that an executable says it is of."""
    with open(path, "rb") as file:
        found = COMMIT.findall(file.read())
    if len(found) != 1:
        raise ValueError(f"{path} has {len(found)} names of commits, not one: it is not of Scripts/release")
    return found[0].decode()


def of_another_commit(binaries, directory):
    """Copies of the executables that say that they are of another commit, and both commits."""
    place = os.path.join(directory, "former-executables")
    os.mkdir(place)
    commits = set()
    for name in ["ringback", "ringbackd", "ringback-relay", "ringback-sandbox"]:
        with open(os.path.join(binaries, name), "rb") as file:
            content = file.read()
        commit = commit_of(os.path.join(binaries, name)).encode()
        other = commit[:-1] + (b"1" if commit.endswith(b"0") else b"0")
        commits.add((commit.decode(), other.decode()))
        with open(os.path.join(place, name), "wb") as file:
            file.write(content.replace(b"commit " + commit, b"commit " + other))
        os.chmod(file.name, 0o755)
    [(commit, other)] = commits
    return place, commit, other
