internal import Glibc
internal import RingbackBase

/// Reads and writes the desktop's files. A file is replaced as a whole by rename, so it is never half written. A
/// symbolic link is kept and its target replaced, because some users keep their settings in a repository.
enum FileStore {
    /// The maximum size in bytes. Larger files are not read.
    private static let maxSize = 1 << 20

    /// The text of a file; nil if it cannot be read, is too large or is not UTF-8.
    static func text(of path: String) -> String? {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var status = stat()
        guard unsafe fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size <= maxSize else {
            return nil
        }
        let (bytes, code) = Descriptor.read(file, atMost: maxSize + 1)
        return code != 0 || bytes.count > maxSize ? nil : String(validating: bytes, as: UTF8.self)
    }

    static func directory(of path: String) -> String { String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) }

    /// Creates a directory and its parents with mode 0700, as the base directory specification asks.
    static func makeDirectory(_ path: String) throws(SchemeRegistry.Failure) {
        var status = stat()
        guard !path.isEmpty, unsafe stat(path, &status) != 0 else { return }
        try makeDirectory(directory(of: path))
        let code = unsafe mkdir(path, 0o700) == 0 ? 0 : errno
        guard code == 0 || code == EEXIST else { throw failure("make", path, code) }
    }

    static func write(_ text: String, to stated: String) throws(SchemeRegistry.Failure) {
        let path = target(of: stated)
        var status = stat()
        let mode = unsafe stat(path, &status) == 0 ? status.st_mode & 0o777 : 0o644
        let beside = "\(path).ringback-\(getpid())"
        let file = unsafe open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode)
        guard file >= 0 else { throw failure("write", path, errno) }
        // Whatever the caller's umask is: the desktop reads these files.
        _ = fchmod(file, mode)
        var code = Descriptor.write(Array(text.utf8), to: file).code
        if code == 0, fsync(file) != 0 { code = errno }
        close(file)
        if code == 0, unsafe rename(beside, path) != 0 { code = errno }
        guard code == 0 else {
            unsafe unlink(beside)
            throw failure("write", path, code)
        }
    }

    static func remove(_ path: String) throws(SchemeRegistry.Failure) {
        let code = unsafe unlink(path) == 0 ? 0 : errno
        guard code == 0 || code == ENOENT else { throw failure("remove", path, code) }
    }

    static func exists(_ path: String) -> Bool {
        var status = stat()
        return unsafe lstat(path, &status) == 0
    }

    static func isLink(_ path: String) -> Bool {
        var status = stat()
        return unsafe lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }

    /// The target of a symbolic link; otherwise the path itself.
    private static func target(of path: String) -> String {
        guard let found = unsafe realpath(path, nil) else { return path }
        defer { unsafe free(found) }
        return unsafe String(cString: found)
    }

    private static func failure(_ verb: String, _ path: String, _ code: Int32) -> SchemeRegistry.Failure {
        SchemeRegistry.Failure(reason: "Cannot \(verb) \(path): \(unsafe String(cString: strerror(code))).")
    }
}

/// The directories of desktop files (XDG Base Directory 0.8, and the specifications of MIME applications and menus).
public struct DesktopPlaces: Equatable, Sendable {
    /// `$XDG_DATA_HOME/applications`: the user's own `.desktop` files.
    public let applications: String
    /// Directories with `.desktop` files, the user's own first.
    public let allApplications: [String]
    /// The user's `mimeapps.list` files, highest priority first. They need not exist.
    public let ownLists: [String]
    /// All `mimeapps.list` files, highest priority first.
    public let allLists: [String]
    /// `$XDG_CONFIG_HOME/mimeapps.list`, to which a user's choice is written.
    public let mainList: String

    /// - Parameter environment: returns a variable's value; nil or empty if it is not set.
    /// - Returns: nil if neither a home directory nor the XDG variables are set.
    public init?(environment: (String) -> String?) {
        func directory(_ name: String, _ usual: String) -> String? {
            // The specification says that a relative path is ignored.
            if let path = environment(name), path.hasPrefix("/") { return path }
            return environment("HOME").flatMap { $0.hasPrefix("/") ? "\($0)/\(usual)" : nil }
        }
        func directories(_ name: String, _ usual: String) -> [String] {
            let stated = environment(name) ?? ""
            return (stated.isEmpty ? usual : stated).split(separator: ":").map(String.init).filter { $0.hasPrefix("/") }
        }
        guard let config = directory("XDG_CONFIG_HOME", ".config"),
            let data = directory("XDG_DATA_HOME", ".local/share")
        else { return nil }
        let desktops = (environment("XDG_CURRENT_DESKTOP") ?? "").split(separator: ":").map { $0.lowercased() }
        let names = desktops.filter { !$0.contains("/") }.map { "\($0)-mimeapps.list" } + ["mimeapps.list"]
        func lists(_ directories: [String]) -> [String] {
            directories.flatMap { directory in names.map { "\(directory)/\($0)" } }
        }
        let dataDirectories = directories("XDG_DATA_DIRS", "/usr/local/share:/usr/share")
        applications = "\(data)/applications"
        allApplications = ([data] + dataDirectories).map { "\($0)/applications" }
        mainList = "\(config)/mimeapps.list"
        ownLists = lists([config]) + lists(["\(data)/applications"])
        allLists = lists([config] + directories("XDG_CONFIG_DIRS", "/etc/xdg")) + lists(allApplications)
    }
}
