internal import Glibc

public enum Path {
    /// Nil for a relative path if the working directory was deleted.
    public static func absolute(_ path: String) -> String? {
        if path.hasPrefix("/") { return path }
        guard let directory = unsafe getcwd(nil, 0) else { return nil }
        defer { unsafe free(directory) }
        return unsafe "\(String(cString: directory))/\(path)"
    }
}

/// What other users may do with a path. The raw values are those of `cause` in the socket API and in the report of
/// `ringbackd --check-config`.
public enum PathTrouble: String, Sendable, CaseIterable {
    case writableByOthers = "writable_by_others"
    /// A file with a secret.
    case readableByOthers = "readable_by_others"
    /// A directory that only its owner may use.
    case openToOthers = "open_to_others"
    /// It belongs neither to the user nor to root.
    case foreignOwner = "foreign_owner"
}

public enum Directory {
    /// In no order; none if it cannot be read.
    public static func names(in path: String) -> [String] {
        guard let stream = unsafe opendir(path) else { return [] }
        return unsafe (try? names(closing: stream)) ?? []
    }

    /// A `readdir` that failed.
    public struct Failure: Error {
        /// As in `errno`.
        public let code: Int32
    }

    /// What is left in a stream of `opendir`, which is closed.
    public static func names(closing stream: OpaquePointer) throws(Failure) -> [String] {
        defer { unsafe closedir(stream) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = unsafe readdir(stream) else {
                let code = errno
                guard code == 0 else { throw Failure(code: code) }
                return names
            }
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
    }
}

/// Whole reads and writes of a blocking descriptor, or of a file.
package enum Descriptor {
    /// The bytes up to the end, or until there are `limit` of them or more, and an errno if reading failed before.
    package static func read(_ descriptor: Int32, atMost limit: Int) -> (bytes: [UInt8], code: Int32) {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while bytes.count < limit {
            let count = unsafe Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return (bytes, errno) }
            guard count > 0 else { break }
            bytes += buffer[..<count]
        }
        return (bytes, 0)
    }

    /// What a socket has now, and how `recv` returned: its result, and its errno.
    package static func receive(
        _ descriptor: Int32, atMost limit: Int, flags: Int32 = 0
    ) -> (bytes: [UInt8], count: Int, code: Int32) {
        var (count, code): (Int, Int32) = (0, 0)
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: limit) { buffer, initialized in
            count = unsafe recv(descriptor, buffer.baseAddress, buffer.count, flags)
            code = errno
            initialized = max(0, count)
        }
        return (bytes, count, code)
    }

    /// How many bytes were written, and an errno if that is not all of them.
    package static func write(_ bytes: [UInt8], to descriptor: Int32) -> (count: Int, code: Int32) {
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.write(descriptor, buffer.baseAddress.map { unsafe $0 + written }, buffer.count - written)
            }
            let code = errno
            if count > 0 {
                written += count
            } else if count == 0 || code != EINTR {
                return (written, count == 0 ? EIO : code)
            }
        }
        return (written, 0)
    }
}

/// Calls `body` with the texts as a NULL-terminated C argument vector, valid during the call.
package func withCStrings<Result>(
    _ texts: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
) -> Result {
    var pointers = unsafe texts.map { unsafe strdup($0) }
    unsafe pointers.append(nil)
    defer { unsafe pointers.forEach { unsafe free($0) } }
    return unsafe pointers.withUnsafeBufferPointer { buffer in
        // Never empty, because it always has the terminating NULL.
        guard let base = buffer.baseAddress else { preconditionFailure("an argument vector has an end") }
        return unsafe body(base)
    }
}
