#if canImport(Glibc)
    internal import Glibc
#endif

/// Secret bytes, such as a token. A secret appears as `<secret>` when it is printed, reflected or interpolated. Secrets
/// are compared in constant time, and zeroed when the last copy is released. Only ``revealed()``, ``revealedBytes()``
/// and ``withBytes(_:)`` read them, so that a search for these names finds every use.
public struct Secret: Sendable {
    private let storage: Storage

    /// The caller has to erase the source.
    public init(bytes: some Collection<UInt8>) { storage = Storage(bytes) }
    public init(_ text: String) { storage = Storage(text.utf8) }
    public var count: Int { storage.count }
    public var isEmpty: Bool { storage.count == 0 }

    /// The bytes are valid only during the call. Throws what `body` throws.
    public func withBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // Copies the pointer. With a span of the class's property itself, the optimizer of Swift 6.3 crashes.
        let buffer = unsafe storage.buffer
        return try withExtendedLifetime(storage) { () throws(Failure) in try body(unsafe buffer.bytes) }
    }

    /// For the code that sends or stores the secret. Invalid UTF-8 is replaced by U+FFFD.
    public func revealed() -> String { unsafe String(decoding: storage.buffer, as: UTF8.self) }

    /// For the code that sends or stores the secret.
    public func revealedBytes() -> [UInt8] { unsafe [UInt8](storage.buffer) }

    /// Zeroes the bytes when it is destroyed. Immutable after creation, so sharing it between threads is safe.
    @safe private final class Storage: @unchecked Sendable {
        let buffer: UnsafeMutableRawBufferPointer
        var count: Int { unsafe buffer.count }

        init(_ bytes: some Collection<UInt8>) {
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
            unsafe buffer.copyBytes(from: bytes)
            unsafe self.buffer = buffer
        }

        deinit {
            guard let base = unsafe buffer.baseAddress else { return }
            unsafe explicit_bzero(base, buffer.count)
            unsafe buffer.deallocate()
        }
    }
}

extension Secret: Hashable {
    /// In constant time for secrets of equal length. Only the length can be learned from the duration.
    public static func == (left: Secret, right: Secret) -> Bool {
        guard left.count == right.count else { return false }
        return left.withBytes { mine in
            right.withBytes { theirs in
                var difference: UInt8 = 0
                for index in 0..<mine.byteCount {
                    let left = unsafe mine.unsafeLoad(fromByteOffset: index, as: UInt8.self)
                    let right = unsafe theirs.unsafeLoad(fromByteOffset: index, as: UInt8.self)
                    difference |= left ^ right
                }
                return difference == 0
            }
        }
    }

    public func hash(into hasher: inout Hasher) {
        unsafe hasher.combine(bytes: UnsafeRawBufferPointer(storage.buffer))
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "<secret>" }
    public var debugDescription: String { "<secret>" }
    /// Without this, reflection would print the private storage.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
