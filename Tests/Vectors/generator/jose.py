"""Keys and signatures in plain integers, so that forgeries are as easy to make as the real thing.

Every key comes from its name: the same files come out of every run. Whoever reads this can sign with these keys, which
is their purpose; nothing but the vectors may trust them.
"""

import base64
import hashlib
import hmac
import json

HASHES = {"256": "sha256", "384": "sha384", "512": "sha512"}


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def stream(seed, count):
    """Bytes that look random and are not."""
    return hashlib.shake_256(seed.encode()).digest(count)


def digest(name, message):
    return hashlib.new(name, message).digest()


# RSA


SMALL = [n for n in range(3, 4000, 2) if all(n % p for p in range(3, int(n**0.5) + 1, 2))]


def is_prime(number, seed):
    if any(number % p == 0 for p in SMALL):
        return False
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for attempt in range(16):
        base = int.from_bytes(stream(f"{seed}/{attempt}", 16), "big") | 2
        value = pow(base, odd, number)
        if value in (1, number - 1):
            continue
        for _ in range(twos - 1):
            value = value * value % number
            if value == number - 1:
                break
        else:
            return False
    return True


def prime(seed, bits, exponent):
    number = int.from_bytes(stream(seed, bits // 8), "big") | (3 << (bits - 2)) | 1
    while (number - 1) % exponent == 0 or not is_prime(number, seed):
        number += 2
    return number


DIGEST_INFO = {
    "md5": "3020300c06082a864886f70d020505000410",
    "sha1": "3021300906052b0e03021a05000414",
    "sha256": "3031300d060960864801650304020105000420",
    "sha384": "3041300d060960864801650304020205000430",
    "sha512": "3051300d060960864801650304020305000440",
}


class RSA:
    kty = "RSA"

    def __init__(self, seed, bits=2048, exponent=65537):
        p, q = prime(seed + "/p", bits // 2, exponent), prime(seed + "/q", bits // 2, exponent)
        self.p, self.q, self.n, self.e = p, q, p * q, exponent
        self.d = pow(exponent, -1, (p - 1) * (q - 1))
        self.size = bits // 8
        self.seed = seed

    def jwk(self):
        number = lambda value: b64(value.to_bytes((value.bit_length() + 7) // 8, "big"))
        return {"kty": "RSA", "n": number(self.n), "e": number(self.e)}

    def raw(self, block):
        # By halves (RFC 8017 section 5.2.1): a quarter of the work.
        number, p, q = int.from_bytes(block, "big"), self.p, self.q
        one, two = pow(number, self.d % (p - 1), p), pow(number, self.d % (q - 1), q)
        return (two + (one - two) * pow(q, -1, p) % p * q).to_bytes(self.size, "big")

    def pkcs1_block(self, hash_name, message, info=None):
        info = bytes.fromhex(DIGEST_INFO[hash_name]) if info is None else info
        tail = info + digest(hash_name, message)
        return b"\x00\x01" + b"\xff" * (self.size - 3 - len(tail)) + b"\x00" + tail

    def pss_block(self, hash_name, message, salt_length=None, mask_hash=None):
        length = hashlib.new(hash_name).digest_size
        salt = stream(f"{self.seed}/salt/{hash_name}", length if salt_length is None else salt_length)
        inner = digest(hash_name, b"\x00" * 8 + digest(hash_name, message) + salt)
        block = b"\x00" * (self.size - len(salt) - length - 2) + b"\x01" + salt
        mask, counter = b"", 0
        while len(mask) < len(block):
            mask += digest(mask_hash or hash_name, inner + counter.to_bytes(4, "big"))
            counter += 1
        masked = bytes(a ^ b for a, b in zip(block, mask))
        return bytes([masked[0] & 0x7F]) + masked[1:] + inner + b"\xbc"

    def sign(self, alg, message):
        hash_name = HASHES[alg[2:]]
        block = self.pss_block if alg.startswith("PS") else self.pkcs1_block
        return self.raw(block(hash_name, message))


# Curves y^2 = x^3 + ax + b


class Curve:
    def __init__(self, name, size, p, a, b, n, x, y):
        self.name, self.size, self.p, self.a, self.b, self.n, self.g = name, size, p, a, b, n, (x, y)

    def add(self, one, two):
        if one is None or two is None:
            return one or two
        (x1, y1), (x2, y2) = one, two
        if x1 == x2 and (y1 + y2) % self.p == 0:
            return None
        slope = (3 * x1 * x1 + self.a) * pow(2 * y1, -1, self.p) if one == two else (y2 - y1) * pow(x2 - x1, -1, self.p)
        x = (slope * slope - x1 - x2) % self.p
        return x, (slope * (x1 - x) - y1) % self.p

    def times(self, factor, point=None):
        result, point = None, point or self.g
        while factor:
            if factor & 1:
                result = self.add(result, point)
            point, factor = self.add(point, point), factor >> 1
        return result


def curve(name, size, p, a, b, n, x, y):
    return Curve(name, size, p, a % p, *(int(text, 16) for text in (b, n, x, y)))


P256 = 2**256 - 2**224 + 2**192 + 2**96 - 1
P384 = 2**384 - 2**128 - 2**96 + 2**32 - 1
P521 = 2**521 - 1
CURVES = {
    "P-256": curve(
        "P-256",
        32,
        P256,
        -3,
        "5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b",
        "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551",
        "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296",
        "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5",
    ),
    "P-384": curve(
        "P-384",
        48,
        P384,
        -3,
        "b3312fa7e23ee7e4988e056be3f82d19181d9c6efe8141120314088f5013875ac656398d8a2ed19d2a85c8edd3ec2aef",
        "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973",
        "aa87ca22be8b05378eb1c71ef320ad746e1d3b628ba79b9859f741e082542a385502f25dbf55296c3a545e3872760ab7",
        "3617de4a96262c6f5d9e98bf9292dc29f8f41dbd289a147ce9da3113b5f0b8c00a60b1ce1d7e819d7a431d7c90ea0e5f",
    ),
    "P-521": curve(
        "P-521",
        66,
        P521,
        -3,
        "51953eb9618e1c9a1f929a21a0b68540eea2da725b99b315f3b8b489918ef109e156193951ec7e937b1652c0bd3bb1bf073573df883d2c"
        "34f1ef451fd46b503f00",
        "1" + "f" * 64 + "fa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409",
        "c6858e06b70404e9cd9e3ecb662395b4429c648139053fb521f828af606b4d3dbaa14b5e77efe75928fe1dc127a2ffa8de3348b3c1856a"
        "429bf97e7e31c2e5bd66",
        "11839296a789a3bc0045c8a5fb42c7d1bd998f54449579b446817afbd17273e662c97ee72995ef42640c550b9013fad0761353c7086a27"
        "2c24088be94769fd16650",
    ),
    "secp256k1": curve(
        "secp256k1",
        32,
        2**256 - 2**32 - 977,
        0,
        "7",
        "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141",
        "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
        "483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8",
    ),
}


class EC:
    kty = "EC"

    def __init__(self, seed, name):
        self.curve, self.seed = CURVES[name], seed
        self.d = int.from_bytes(stream(seed, self.curve.size + 16), "big") % (self.curve.n - 1) + 1
        self.point = self.curve.times(self.d)

    def jwk(self, point=None):
        x, y = point or self.point
        coordinate = lambda value: b64(value.to_bytes(self.curve.size, "big"))
        return {"kty": "EC", "crv": self.curve.name, "x": coordinate(x), "y": coordinate(y)}

    def halves(self, hash_name, message):
        n = self.curve.n
        hashed = digest(hash_name, message)
        number = int.from_bytes(hashed, "big") >> max(0, len(hashed) * 8 - n.bit_length())
        nonce = int.from_bytes(stream(self.seed + hashed.hex(), self.curve.size + 16), "big") % (n - 1) + 1
        r = self.curve.times(nonce)[0] % n
        return r, pow(nonce, -1, n) * (number + r * self.d) % n

    def join(self, r, s, size=None):
        size = size or self.curve.size
        return r.to_bytes(size, "big") + s.to_bytes(size, "big")

    def der(self, r, s):
        integer = lambda value: (lambda raw: b"\x02" + bytes([len(raw)]) + raw)(
            value.to_bytes(value.bit_length() // 8 + 1, "big")
        )
        body = integer(r) + integer(s)
        return b"\x30" + (bytes([len(body)]) if len(body) < 128 else bytes([0x81, len(body)])) + body

    def sign(self, alg, message):
        return self.join(*self.halves(HASHES[alg[2:5]], message))


# Ed25519 (RFC 8032)


class Ed25519:
    kty = "OKP"
    p = 2**255 - 19
    order = 2**252 + 27742317777372353535851937790883648493
    d = -121665 * pow(121666, -1, p) % p

    def __init__(self, seed):
        self.secret = stream(seed, 32)
        hashed = hashlib.sha512(self.secret).digest()
        self.scalar = int.from_bytes(hashed[:32], "little") & ((1 << 254) - 8) | (1 << 254)
        self.prefix = hashed[32:]
        self.public = self.encode(self.times(self.scalar))

    @classmethod
    def base(cls):
        y = 4 * pow(5, -1, cls.p) % cls.p
        square = (y * y - 1) * pow(cls.d * y * y + 1, -1, cls.p) % cls.p
        x = pow(square, (cls.p + 3) // 8, cls.p)
        if (x * x - square) % cls.p:
            x = x * pow(2, (cls.p - 1) // 4, cls.p) % cls.p
        return (x if x % 2 == 0 else cls.p - x), y

    @classmethod
    def times(cls, factor):
        result, point = (0, 1), cls.base()
        while factor:
            if factor & 1:
                result = cls.add(result, point)
            point, factor = cls.add(point, point), factor >> 1
        return result

    @classmethod
    def add(cls, one, two):
        (x1, y1), (x2, y2) = one, two
        t = cls.d * x1 * x2 * y1 * y2 % cls.p
        return (x1 * y2 + x2 * y1) * pow(1 + t, -1, cls.p) % cls.p, (y1 * y2 + x1 * x2) * pow(1 - t, -1, cls.p) % cls.p

    @classmethod
    def encode(cls, point):
        return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")

    def jwk(self):
        return {"kty": "OKP", "crv": "Ed25519", "x": b64(self.public)}

    def sign(self, alg, message):
        nonce = int.from_bytes(hashlib.sha512(self.prefix + message).digest(), "little") % self.order
        first = self.encode(self.times(nonce))
        factor = int.from_bytes(hashlib.sha512(first + self.public + message).digest(), "little") % self.order
        return first + ((nonce + factor * self.scalar) % self.order).to_bytes(32, "little")


class HMAC:
    """What a client must never check a token with."""

    kty = "oct"

    def __init__(self, secret):
        self.secret = secret

    def sign(self, alg, message):
        return hmac.new(self.secret, message, HASHES[alg[2:]]).digest()


def text(value):
    """JSON without spaces; bytes as they are."""
    return value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def signed_part(header, payload):
    return f"{b64(text(header))}.{b64(text(payload))}".encode()


def half_hash(alg, value):
    name = "sha512" if alg in ("EdDSA", "Ed25519") else HASHES[alg[2:]]
    hashed = digest(name, value.encode())
    return b64(hashed[: len(hashed) // 2])
