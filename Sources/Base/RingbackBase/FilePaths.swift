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
