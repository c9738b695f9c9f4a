import Glibc
import RingbackClient

/// Files in a home directory. A file is written under another name and renamed, so that no program reads a part of it.
enum HomeFile {
    /// True if a regular file is at a path.
    static func isRegular(_ path: String) -> Bool {
        var status = stat()
        return unsafe lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    /// What the symbolic link at a path leads to; nil if there is none.
    static func target(of path: String) -> String? {
        var buffer = [CChar](repeating: 0, count: 4_096)
        let count = unsafe readlink(path, &buffer, buffer.count)
        guard count > 0, count < buffer.count else { return nil }
        return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    static func exists(_ path: String) -> Bool {
        var status = stat()
        return unsafe lstat(path, &status) == 0
    }

    static func isLink(_ path: String) -> Bool { target(of: path) != nil }

    /// True if both names lead to one file.
    static func areSame(_ left: String, _ right: String) -> Bool {
        var one = stat()
        var other = stat()
        guard unsafe stat(left, &one) == 0, unsafe stat(right, &other) == 0 else { return false }
        return one.st_dev == other.st_dev && one.st_ino == other.st_ino
    }

    /// Under `sudo`, HOME may belong to another user. That user could not change or remove what root writes there.
    static func refuseForeign(_ home: String) throws(RingbackError) {
        var status = stat()
        guard unsafe stat(home, &status) == 0, status.st_uid != geteuid() else { return }
        throw RingbackError(
            "no_place",
            "Nothing was changed: HOME is \(home), which belongs to uid \(status.st_uid), and this runs as uid "
                + "\(geteuid()). Run it as the user whose home it is, without sudo.")
    }

    /// The bytes of a regular file; nil if there is none.
    static func contents(of path: String) throws(RingbackError) -> [UInt8]? {
        let file = unsafe open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw failure("read", path)
        }
        defer { close(file) }
        var status = stat()
        guard unsafe fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw RingbackError("file_failed", "\(path) is not a regular file.")
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(status.st_size))
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        while true {
            let count = unsafe read(file, &buffer, buffer.count)
            if count < 0 { throw failure("read", path) }
            if count == 0 { return bytes }
            bytes += buffer[..<count]
        }
    }

    /// Replaces a file by renaming. A program that runs from the old file keeps it.
    static func put(_ bytes: [UInt8], at path: String, mode: mode_t) throws(RingbackError) {
        let slash = path.lastIndex(of: "/") ?? path.startIndex
        var template = Array("\(path[..<slash])/.ringback.XXXXXX".utf8CString)
        let file = unsafe mkstemp(&template)
        guard file >= 0 else { throw failure("make", path) }
        _ = fcntl(file, F_SETFD, FD_CLOEXEC)
        let made = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let isWritten = writeAll(bytes, to: file) && fchmod(file, mode) == 0 && fsync(file) == 0
        let isClosed = close(file) == 0
        guard isWritten, isClosed, unsafe rename(made, path) == 0 else {
            let problem = failure("write", path)
            unsafe unlink(made)
            throw problem
        }
    }

    /// Makes a directory and those above it.
    static func makeDirectories(_ path: String) throws(RingbackError) {
        var directory = ""
        for part in path.split(separator: "/") {
            directory += "/" + part
            guard unsafe mkdir(directory, 0o755) == 0 || errno == EEXIST else {
                throw failure("make the directory", directory)
            }
        }
    }

    static func failure(_ action: String, _ path: String) -> RingbackError {
        let reason = unsafe String(cString: strerror(errno))
        return RingbackError("file_failed", "Cannot \(action) \(path): \(reason).")
    }

    private static func writeAll(_ bytes: [UInt8], to file: Int32) -> Bool {
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe write(file, buffer.baseAddress?.advanced(by: written), buffer.count - written)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            written += count
        }
        return true
    }
}
