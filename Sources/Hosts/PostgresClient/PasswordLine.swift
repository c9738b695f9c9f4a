internal import Glibc
internal import Secrets

/// A file with a password in its first line.
enum PasswordLine {
    private static let mostBytes = 1_024

    /// Nil if the file cannot be read, is empty or too long, or others than its owner and group may read it.
    static func read(_ path: String) -> Secret? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var facts = stat()
        guard unsafe fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG,
            facts.st_uid == geteuid() || facts.st_uid == 0, facts.st_mode & 0o037 == 0
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: mostBytes + 1)
        defer {
            unsafe bytes.withUnsafeMutableBytes { buffer in
                if let start = buffer.baseAddress { unsafe explicit_bzero(start, buffer.count) }
            }
        }
        let count = unsafe Glibc.read(descriptor, &bytes, bytes.count)
        guard count > 0, count <= mostBytes else { return nil }
        let line = bytes[..<count].prefix { $0 != 0x0A && $0 != 0x0D }
        guard !line.isEmpty, !line.contains(0) else { return nil }
        return Secret(bytes: line)
    }
}
