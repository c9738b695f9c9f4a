internal import Encodings
internal import Glibc
public import Secrets

/// Unpredictable values from the kernel's random generator, the only source of randomness in the project. If it fails,
/// the process stops.
public enum RandomToken {
    /// Random bytes.
    public static func bytes(_ count: Int) -> [UInt8] {
        precondition(count >= 0, "a length is not negative")
        return unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            var filled = 0
            while filled < count {
                // `getentropy` returns at most 256 bytes, waits until the generator is seeded and is not interrupted by
                // signals.
                let size = min(count - filled, 256)
                guard let start = buffer.baseAddress, unsafe getentropy(start + filled, size) == 0 else {
                    preconditionFailure("the kernel's random generator failed")
                }
                filled += size
            }
            initialized = count
        }
    }

    /// A secret with `bits` random bits as base64url, for a state, a nonce or a PKCE verifier. 256 bits give 43
    /// characters, the shortest verifier that RFC 7636 section 4.1 allows. Some providers truncate longer nonces.
    public static func base64URL(bits: Int = 256) -> Secret {
        var raw = bytes((bits + 7) / 8)
        var text = Base64URL.encodeToBytes(raw)
        defer {
            erase(&raw)
            erase(&text)
        }
        return Secret(bytes: text)
    }

    /// A random identifier as base64url. It cannot be guessed but is not secret, for example a flow's identifier.
    public static func identifier(bits: Int = 128) -> String {
        Base64URL.encode(bytes((bits + 7) / 8))
    }

    private static func erase(_ bytes: inout [UInt8]) {
        unsafe bytes.withUnsafeMutableBytes { buffer in
            guard let start = buffer.baseAddress else { return }
            unsafe explicit_bzero(start, buffer.count)
        }
    }
}
