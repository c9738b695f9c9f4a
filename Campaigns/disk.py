"""A power cut: of what is kept, only what was synced is left (disk.h writes it down; here is the beginning and the end)."""

import os
import shutil


class Disk:
    """Of a directory whose writer is under the shim."""

    def __init__(self, house):
        self.kept = house.kept
        self.mirror = house.place("mirror")
        self.shim = house.shim
        # An inode's number must not be given to another file before the end.
        self.held = []

    def begin(self):
        """What is there now is durable, as after a long time of quiet."""
        self.end()
        os.mkdir(self.mirror, 0o700)
        for directory, directories, files in os.walk(self.kept):
            names = directories + files
            lines = "".join(f"{os.lstat(os.path.join(directory, name)).st_ino} {name}\n" for name in names)
            self.put("dir", os.stat(directory).st_ino, lines.encode())
            for name in files:
                file = open(os.path.join(directory, name), "rb")
                self.held.append(file)
                self.put("file", os.fstat(file.fileno()).st_ino, file.read())
        self.root = os.stat(self.kept).st_ino
        self.shim.mirror(self.mirror)

    def put(self, kind, inode, content):
        with open(os.path.join(self.mirror, f"{kind}-{inode}"), "wb") as file:
            file.write(content)

    def get(self, kind, inode):
        """None if it was never synced."""
        try:
            with open(os.path.join(self.mirror, f"{kind}-{inode}"), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def cut(self):
        """The power goes, and comes back; the daemon must be gone."""
        is_directory = {}
        for directory, directories, _ in os.walk(self.kept):
            is_directory |= {os.lstat(os.path.join(directory, name)).st_ino: True for name in directories}
        shutil.rmtree(self.kept)
        self.make(self.kept, self.root, is_directory)
        self.end()

    def make(self, path, inode, is_directory):
        os.mkdir(path, 0o700)
        for line in (self.get("dir", inode) or b"").decode().splitlines():
            number, name = line.split(" ", 1)
            place = os.path.join(path, name)
            if int(number) in is_directory:
                self.make(place, int(number), is_directory)
                continue
            descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(self.get("file", number) or b"")

    def end(self):
        self.shim.mirror("")
        shutil.rmtree(self.mirror, ignore_errors=True)
        for file in self.held:
            file.close()
        self.held = []
