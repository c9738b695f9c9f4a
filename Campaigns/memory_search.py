"""Secrets in the memory of processes: in which forms they are looked for, and where they are (memory.c)."""

import base64
import binascii
import ctypes
import ctypes.util
import os
import re
import struct
import subprocess
import time
from typing import NamedTuple

from harness import HERE, Trouble, compiled, read

# Bytes of a secret that are looked for at a time: what is left of a copy is found if so many and as many again are left.
CHUNK = 16
# A secret of fewer bytes is not told from anything else. A project's refresh tokens have so many.
SHORTEST = 12


def chunks(text):
    """The parts of some bytes: one after another, and the last ones."""
    if SHORTEST <= len(text) < CHUNK:
        yield 0, text
    for start in range(0, len(text) - CHUNK + 1, CHUNK):
        yield start, text[start:start + CHUNK]
    if len(text) > CHUNK and len(text) % CHUNK:
        yield len(text) - CHUNK, text[-CHUNK:]


def decoded(text):
    """The bytes of base64url; none if it is something else."""
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return b""


def encoded(secret):
    """Base64 of a secret at each of the three places, without what depends on its surroundings."""
    for shift in range(3):
        piece = base64.b64encode(bytes(shift) + secret)[4 if shift else 0:-4]
        yield piece
        yield piece.replace(b"+", b"-").replace(b"/", b"_")


def forms(secret):
    """The forms of a secret (bytes): (name, length of the whole, offset of the part, the part)."""
    plain, parts = secret, []
    if secret.startswith(b"eyJ") and secret.count(b".") == 2:
        # Every token of the same key has the same header.
        header, payload, signature = secret.split(b".")
        plain = secret[len(header) + 1:]
        # The claims are no secret one by one, all of them as they were signed are.
        claims = decoded(payload.decode())
        yield "claims", len(claims), 0, claims
        parts = [decoded(signature.decode())]
    elif re.fullmatch(rb"[a-z]+-[A-Za-z0-9_-]{43}", secret):
        parts = [decoded(secret.partition(b"-")[2].decode())]
    shapes = [("itself", plain), ("UTF-16", plain.decode("latin-1").encode("utf-16-le")),
              ("hexadecimal", plain.hex().encode()), ("hexadecimal", plain.hex().upper().encode())]
    shapes += [("decoded", part) for part in parts] + [("Base64", piece) for piece in encoded(plain)]
    for name, whole in shapes:
        for offset, part in chunks(whole):
            yield name, len(whole), offset, part


class Copy(NamedTuple):
    """A secret, or a part of one, at an address."""

    kind: str
    form: str
    pid: int
    address: int
    length: int
    whole: int
    # The line of /proc/PID/maps.
    mapping: str


class Search:
    """Looks for secrets in processes. What they are for is their `kind`."""

    def __init__(self, directory):
        self.program = compiled(os.path.join(directory, "memory"), os.path.join(HERE, "memory.c"))
        self.seen = 0

    def copies(self, secrets, pids):
        """Every copy of the secrets ({bytes: kind}), also in part."""
        wanted = {}
        for number, secret in enumerate(secrets):
            for form, whole, offset, part in forms(secret):
                wanted.setdefault(part, []).append((number, form, whole, offset))
        listed = list(wanted)
        text = b"".join(struct.pack("=I", len(part)) + part for part in listed)
        ran = subprocess.run([self.program, *map(str, pids)], input=text, capture_output=True, timeout=120)
        if ran.returncode != 0:
            raise Trouble(f"the search ended with status {ran.returncode}: {ran.stderr.decode()}")
        *lines, last = ran.stdout.decode(errors="replace").splitlines()
        self.seen = int(last.split()[1])
        kinds, runs = list(secrets.values()), {}
        for line in lines:
            number, pid, address, mapping = line.split(" ", 3)
            part = listed[int(number)]
            for secret, form, whole, offset in wanted[part]:
                # Parts of one copy have the same beginning.
                base = int(address, 16) - offset
                runs.setdefault((int(pid), base, form, whole), []).append((offset, len(part), kinds[secret], mapping))
        return list(self.merged(runs))

    @staticmethod
    def merged(runs):
        """One copy for what lies together. Tokens of one session have beginnings in common: the longest run counts."""
        end = {}
        order = sorted(runs.items(), key=lambda run: (run[0][0], -len(run[1])))
        for (pid, base, form, whole), found in order:
            first = min(offset for offset, _, _, _ in found)
            last = max(offset + length for offset, length, _, _ in found)
            covered = end.setdefault(pid, [])
            if any(start <= base + first and base + last <= stop for start, stop in covered):
                continue
            covered.append((base + first, base + last))
            yield Copy(found[0][2], form, pid, base + first, last - first, whole, found[0][3])


def look_until(look, is_clean, seconds):
    """What is found when it is clean or the time is up, and after how many seconds that was."""
    started = time.monotonic()
    while True:
        found = look()
        elapsed = time.monotonic() - started
        if is_clean(found) or elapsed >= seconds:
            return found, elapsed
        time.sleep(min(0.5, max(0.1, seconds - elapsed)))


def place(copy, stacks):
    """What the memory is for that a copy is in, in a word or two."""
    low, high = (int(word, 16) for word in copy.mapping.split()[0].split("-"))
    name = copy.mapping.split(None, 5)[5] if len(copy.mapping.split(None, 5)) > 5 else ""
    if name == "[heap]":
        return "heap"
    for thread, pointer in stacks.get(copy.pid, []):
        if low <= pointer < high:
            return f"stack of {thread}" + ("" if copy.address >= pointer else ", below its end")
    if name:
        return os.path.basename(name)
    # Arenas of malloc begin at a multiple of their greatest size.
    return "heap (second arena)" if low % (64 << 20) == 0 else "anonymous"


def stacks(pids):
    """Where the stacks of the threads end now: {pid: [(thread, stack pointer)]}."""
    found = {}
    for pid in pids:
        for thread in os.listdir(f"/proc/{pid}/task"):
            words = read(f"/proc/{pid}/task/{thread}/syscall").split()
            if len(words) > 2:
                name = read(f"/proc/{pid}/task/{thread}/comm").strip()
                found.setdefault(pid, []).append((name, int(words[-2], 16)))
    return found


def surroundings(copy, before=64, after=64):
    """The bytes around a copy, as they are now, for whoever wants to know who holds it."""
    with open(f"/proc/{copy.pid}/mem", "rb", buffering=0) as file:
        file.seek(copy.address - before)
        text = file.read(before + copy.length + after)
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in text)


def data_key(state, keys):
    """The key that seals the sessions, unwrapped as the daemon does it: `vault.key` in the state directory, a key file.

    Returns it with the key that wraps it.
    """
    with open(os.path.join(state, "vault.key"), "rb") as file:
        sealed = file.read()
    (name,) = os.listdir(keys)
    with open(os.path.join(keys, name), "rb") as file:
        wrapping = decoded(file.read().strip().decode())
    length = int.from_bytes(sealed[26:30], "big")
    context = sealed[:10] + sealed[26:30 + length]
    box = sealed[30 + length:]
    return opened(box, wrapping, context), wrapping


def opened(box, key, context):
    """The text of an AES-256-GCM box (nonce, ciphertext, tag), by the libcrypto that the daemon has too."""
    library = ctypes.CDLL(ctypes.util.find_library("crypto"))
    library.EVP_CIPHER_CTX_new.restype = ctypes.c_void_p
    library.EVP_aes_256_gcm.restype = ctypes.c_void_p
    cipher = ctypes.c_void_p(library.EVP_CIPHER_CTX_new())
    nonce, text, tag = box[:12], box[12:-16], box[-16:]
    output, count = ctypes.create_string_buffer(len(text)), ctypes.c_int()
    set_tag = 0x11
    steps = [
        lambda: library.EVP_DecryptInit_ex(cipher, ctypes.c_void_p(library.EVP_aes_256_gcm()), None, key, nonce),
        lambda: library.EVP_DecryptUpdate(cipher, None, ctypes.byref(count), context, len(context)),
        lambda: library.EVP_DecryptUpdate(cipher, output, ctypes.byref(count), text, len(text)),
        lambda: library.EVP_CIPHER_CTX_ctrl(cipher, set_tag, len(tag), tag),
        lambda: library.EVP_DecryptFinal_ex(cipher, ctypes.create_string_buffer(16), ctypes.byref(count)),
    ]
    if not all(step() == 1 for step in steps):
        raise Trouble("vault.key cannot be unwrapped with its key file")
    return output.raw
