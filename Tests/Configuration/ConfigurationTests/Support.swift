import Configuration
import Glibc

/// A directory of configuration files that belong to somebody who is not root, whoever runs the tests.
final class Folder {
    /// Whose daemon it would be.
    static let user: uid_t = getuid() == 0 ? 1_000 : getuid()
    /// Somebody else; only root can give files to them.
    static let stranger: uid_t = 1_001
    static let canGiveAway = getuid() == 0

    let path: String

    init() throws {
        var template = Array("/tmp/ringback-configuration-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw SystemError(code: errno) }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        try own(path)
    }

    deinit {
        removeTree(path)
    }

    /// The place that has `config.toml` and `accounts.d` of this directory, and nothing of the machine.
    func place(isExplicit: Bool = true, dropIns: [String] = ["accounts.d"]) -> ConfigurationPlace {
        ConfigurationPlace(
            userFile: "\(path)/config.toml", isExplicit: isExplicit, dropInDirectories: dropIns.map { "\(path)/\($0)" },
            home: path, user: Folder.user
        )
    }

    /// Reads the configuration. The directory stays until that is done.
    func load(isExplicit: Bool = true, dropIns: [String] = ["accounts.d"]) throws -> DaemonConfiguration {
        try DaemonConfiguration.load(place(isExplicit: isExplicit, dropIns: dropIns))
    }

    func report(isExplicit: Bool = true) -> ConfigurationReport {
        ConfigurationReport(of: place(isExplicit: isExplicit))
    }

    @discardableResult
    func write(_ text: String, to name: String = "config.toml", mode: mode_t = 0o600) throws -> String {
        try write(Array(text.utf8), to: name, mode: mode)
    }

    @discardableResult
    func write(_ bytes: [UInt8], to name: String, mode: mode_t = 0o600) throws -> String {
        let file = "\(path)/\(name)"
        let descriptor = unsafe open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw SystemError(code: errno) }
        defer { close(descriptor) }
        guard unsafe Glibc.write(descriptor, bytes, bytes.count) == bytes.count else { throw SystemError(code: errno) }
        guard fchmod(descriptor, mode) == 0 else { throw SystemError(code: errno) }
        try own(file)
        return file
    }

    func makeDirectory(_ name: String, mode: mode_t = 0o755) throws {
        guard unsafe mkdir("\(path)/\(name)", 0o700) == 0, unsafe chmod("\(path)/\(name)", mode) == 0 else {
            throw SystemError(code: errno)
        }
        try own("\(path)/\(name)")
    }

    func own(_ path: String, by user: uid_t = Folder.user) throws {
        guard getuid() == 0 else { return }
        guard unsafe lchown(path, user, gid_t(user)) == 0 else { throw SystemError(code: errno) }
    }
}

struct SystemError: Error {
    let code: Int32
}

private func removeTree(_ path: String) {
    if unsafe unlink(path) == 0 { return }
    for name in (try? names(in: path)) ?? [] where name != "." && name != ".." { removeTree("\(path)/\(name)") }
    unsafe rmdir(path)
}

func content(of file: String) throws -> [UInt8] {
    let descriptor = unsafe open(file, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw SystemError(code: errno) }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
        let count = unsafe read(descriptor, &buffer, buffer.count)
        guard count > 0 else { return bytes }
        bytes += buffer[0..<count]
    }
}

func names(in directory: String) throws -> [String] {
    guard let stream = unsafe opendir(directory) else { throw SystemError(code: errno) }
    defer { unsafe closedir(stream) }
    var names: [String] = []
    while let entry = unsafe readdir(stream) {
        names.append(
            unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            })
    }
    return names.sorted()
}

/// The one account of a configuration of these lines below `[accounts.mail]`.
func account(_ lines: String, mode: mode_t = 0o600) throws -> AccountConfiguration? {
    let folder = try Folder()
    try folder.write("[accounts.mail]\n\(lines)\n", mode: mode)
    return try folder.load()["mail"]
}

/// The mistakes of such a configuration, as `key: message`.
func mistakes(_ lines: String) throws -> [String] {
    do throws(any Error) {
        _ = try account(lines)
        return []
    } catch let errors as ConfigurationErrors {
        return errors.errors.map { "\($0.key?.dropFirst("accounts.mail.".count) ?? ""): \($0.message)" }
    }
}

/// The mistakes of a file with this text, as `line key: message`.
func mistakes(inFile text: String) throws -> [String] {
    let folder = try Folder()
    try folder.write(text)
    return folder.report().errors.map { "\($0.line ?? 0) \($0.key ?? ""): \($0.message)" }
}
