internal import Glibc
public import Secrets

/// Unguessable values from the kernel's generator. There is no other source of randomness in the project, and no
/// fallback: a machine without one cannot sign anybody in safely.
public enum RandomToken {
    /// Random bytes.
    public static func bytes(_ count: Int) -> [UInt8] {
        precondition(count >= 0, "a length is not negative")
        return unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            var filled = 0
            while filled < count {
                // getentropy takes 256 bytes at most, waits for the generator's seed and knows no interruption.
                let size = min(count - filled, 256)
                guard let start = buffer.baseAddress, unsafe getentropy(start + filled, size) == 0 else {
                    preconditionFailure("the kernel's random generator does not answer")
                }
                filled += size
            }
            initialized = count
        }
    }

    /// A secret of so many random bits as base64url: state, nonce, PKCE verifier. 256 bits are 43 characters, which is
    /// the shortest verifier that RFC 7636 section 4.1 allows and the longest nonce that no provider cuts.
    public static func base64URL(bits: Int = 256) -> Secret {
        var raw = bytes((bits + 7) / 8)
        var text = Base64URL.encodeToBytes(raw)
        defer {
            erase(&raw)
            erase(&text)
        }
        return Secret(bytes: text)
    }

    /// A random name as base64url, for what is unguessable but no secret: a flow's or a grant's identifier.
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
