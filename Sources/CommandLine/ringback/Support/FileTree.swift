import Glibc
import RingbackBase

/// Reads and removes directories that this program made. Symbolic links are removed, never followed.
enum FileTree {
    static func remove(_ path: String) {
        if unsafe unlink(path) == 0 || errno == ENOENT { return }
        for name in Directory.names(in: path) { remove("\(path)/\(name)") }
        unsafe rmdir(path)
    }

    /// The last lines of a file, from its last 8 KiB.
    static func lastLines(of path: String, _ count: Int) -> [String] {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        lseek(file, max(0, lseek(file, 0, SEEK_END) - 8_192), SEEK_SET)
        var bytes = [UInt8](repeating: 0, count: 8_192)
        let read = max(0, unsafe Glibc.read(file, &bytes, bytes.count))
        return String(decoding: bytes[..<read], as: UTF8.self).split(separator: "\n").suffix(count).map(String.init)
    }
}
