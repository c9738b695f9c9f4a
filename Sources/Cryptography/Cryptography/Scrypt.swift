internal import COpenSSL
public import Secrets

/// Derives a key from a passphrase with scrypt, which costs time and memory for each guess (RFC 7914).
public enum Scrypt {
    /// The cost of one guess. Every value of this type is within the accepted limits.
    public struct Cost: Sendable, Equatable {
        /// N = 2^17: 128 MiB and about half a second for each guess.
        public static let standard = Cost(n: 1 << 17, r: 8, p: 1)

        /// N, a power of two.
        public let n: Int
        /// r, the block size.
        public let r: Int
        /// p, the number of runs, which are made one after another.
        public let p: Int

        /// Nil if N is not a power of two, and for more than 256 MiB or sixteen times the standard work. The numbers
        /// are read from a file, and a huge cost would block the machine.
        public init?(validN n: Int, r: Int, p: Int) {
            guard n >= 2, n <= 1 << 21, n & (n - 1) == 0, (1...64).contains(r), (1...64).contains(p) else { return nil }
            guard 128 * n * r <= 256 << 20, n * r * p <= 1 << 24 else { return nil }
            self.init(n: n, r: r, p: p)
        }

        private init(n: Int, r: Int, p: Int) {
            self.n = n
            self.r = r
            self.p = p
        }
    }

    /// A key of `length` bytes. It is the same for the same passphrase, salt and cost.
    ///
    /// Throws `failed` if the memory cannot be allocated.
    public static func derive(
        _ passphrase: Secret, salt: [UInt8], cost: Cost = .standard, length: Int = 32
    ) throws(CryptographyError) -> Secret {
        defer { ERR_clear_error() }
        var key = [UInt8](repeating: 0, count: length)
        defer { key.erase() }
        // libcrypto's default limit is 32 MiB, less than the standard cost. It also counts the memory for p and one
        // more block.
        let memory = UInt64(128 * cost.r * (cost.n + cost.p + 2) + (1 << 20))
        let isDerived = passphrase.withBytes { span in
            unsafe span.withUnsafeBytes { bytes in
                let start = unsafe bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
                return unsafe EVP_PBE_scrypt(
                    start, bytes.count, salt, salt.count, UInt64(cost.n), UInt64(cost.r), UInt64(cost.p), memory,
                    &key, length) == 1
            }
        }
        guard isDerived else { throw .failed(operation: "derive a key from a passphrase") }
        return Secret(bytes: key)
    }
}
