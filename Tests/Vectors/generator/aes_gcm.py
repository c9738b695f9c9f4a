"""AES-256-GCM and HKDF in plain integers (FIPS 197, NIST SP 800-38D, RFC 5869): slow, and nobody's library.

It shares no line with the house, so that both must have read the standards alike. Never to be used for a secret.
"""

import hashlib
import hmac


def doubled(byte):
    return (byte << 1) ^ (0x11B if byte & 0x80 else 0)


def multiplied(one, two):
    product = 0
    while two:
        if two & 1:
            product ^= one
        one, two = doubled(one), two >> 1
    return product


def substitutions():
    """The S-box: the inverse in GF(2^8), then an affine map."""
    table = []
    for byte in range(256):
        inverse = next((other for other in range(256) if multiplied(byte, other) == 1), 0)
        turned = [((inverse << n) | (inverse >> (8 - n))) & 0xFF for n in range(5)]
        table.append(turned[0] ^ turned[1] ^ turned[2] ^ turned[3] ^ turned[4] ^ 0x63)
    return table


S = substitutions()


def round_keys(key):
    """Fifteen keys of 16 bytes for a key of 32."""
    words = [list(key[n : n + 4]) for n in range(0, 32, 4)]
    constant = 1
    while len(words) < 60:
        word = list(words[-1])
        if len(words) % 8 == 0:
            word = [S[byte] for byte in word[1:] + word[:1]]
            word[0] ^= constant
            constant = doubled(constant)
        elif len(words) % 8 == 4:
            word = [S[byte] for byte in word]
        words.append([a ^ b for a, b in zip(words[-8], word)])
    return [sum(words[n : n + 4], []) for n in range(0, 60, 4)]


def encrypted_block(keys, block):
    state = [a ^ b for a, b in zip(block, keys[0])]
    for number, key in enumerate(keys[1:], 1):
        # Substitute and shift the rows; the state is written by columns.
        state = [S[state[(n + 4 * (n % 4)) % 16]] for n in range(16)]
        if number < 14:
            mixed = []
            for column in range(0, 16, 4):
                a = state[column : column + 4]
                mixed += [
                    doubled(a[n]) ^ doubled(a[(n + 1) % 4]) ^ a[(n + 1) % 4] ^ a[(n + 2) % 4] ^ a[(n + 3) % 4]
                    for n in range(4)
                ]
            state = mixed
        state = [a ^ b for a, b in zip(state, key)]
    return bytes(state)


def field_product(one, two):
    """In GF(2^128), whose first bit is the lowest power."""
    product = 0
    for bit in range(127, -1, -1):
        if one >> bit & 1:
            product ^= two
        two = (two >> 1) ^ (0xE1 << 120 if two & 1 else 0)
    return product


def padded(data):
    return data + bytes(-len(data) % 16)


def seal(key, nonce, text, context):
    """Nonce of 12 bytes, ciphertext and tag."""
    keys = round_keys(key)
    counter = lambda number: encrypted_block(keys, nonce + number.to_bytes(4, "big"))
    stream = b"".join(counter(number) for number in range(2, 2 + (len(text) + 15) // 16))
    ciphertext = bytes(a ^ b for a, b in zip(text, stream))
    lengths = (8 * len(context)).to_bytes(8, "big") + (8 * len(ciphertext)).to_bytes(8, "big")
    hashed = padded(context) + padded(ciphertext) + lengths
    root, value = int.from_bytes(encrypted_block(keys, bytes(16)), "big"), 0
    for place in range(0, len(hashed), 16):
        value = field_product(value ^ int.from_bytes(hashed[place : place + 16], "big"), root)
    tag = value ^ int.from_bytes(counter(1), "big")
    return nonce + ciphertext + tag.to_bytes(16, "big")


def derive(key, purpose, length):
    """HKDF-SHA-256 without a salt, at most 32 bytes."""
    root = hmac.new(bytes(32), key, hashlib.sha256).digest()
    return hmac.new(root, purpose + b"\x01", hashlib.sha256).digest()[:length]


# Test case 14 of the specification of GCM: the generator writes nothing that it cannot vouch for.
KNOWN = seal(bytes(32), bytes(12), bytes(16), b"")[12:].hex()
if KNOWN != "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919":
    raise SystemExit("this Python computes AES-256-GCM otherwise")
