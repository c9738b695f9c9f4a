import Glibc

enum FileTree {
    static func remove(_ path: String) {
        for name in names(in: path) { remove("\(path)/\(name)") }
        if unsafe rmdir(path) != 0 { unsafe unlink(path) }
    }

    /// The names in a directory, sorted; none if it is none, a link to one included.
    static func names(in path: String) -> [String] {
        var status = stat()
        guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, let directory = unsafe opendir(path)
        else { return [] }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    static func all(in path: String) -> [String] {
        names(in: path).flatMap { name in
            let below = all(in: "\(path)/\(name)")
            return below.isEmpty ? ["\(path)/\(name)"] : below
        }
    }

    static func text(of path: String) -> String? { bytes(of: path).map { String(decoding: $0, as: UTF8.self) } }

    static func bytes(of path: String) -> [UInt8]? {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = unsafe read(file, &buffer, buffer.count)
            guard count > 0 else { return text }
            text += buffer[..<count]
        }
    }

    static func mode(of path: String) -> mode_t? {
        var status = stat()
        return unsafe lstat(path, &status) == 0 ? status.st_mode & 0o7777 : nil
    }

    /// Where a symbolic link leads; nil if it is none.
    static func target(of path: String) -> String? {
        var buffer = [CChar](repeating: 0, count: 4_096)
        let count = unsafe readlink(path, &buffer, buffer.count)
        return count < 0 ? nil : String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    static func setMode(_ mode: mode_t, of path: String) { unsafe chmod(path, mode) }
    static func makeDirectory(_ path: String) { unsafe mkdir(path, 0o700) }
}
