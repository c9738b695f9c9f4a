internal import Adapters
public import BrokerCore
internal import CLinux
internal import Cryptography
internal import Glibc
public import RingbackBase
internal import SessionVault

/// A file in which an account's current token is kept, for programs that can only read a file. A value of the
/// configuration.
public struct KeptFile: Sendable, Equatable {
    public let path: String
    public let account: AccountName
    public let format: TokenFileFormat
    /// Which of the session's access tokens.
    public var key = TokenKey.own
    /// How long after the sign-in the file is removed; nil if it is kept as long as the session.
    public var lifetime: Duration?
    /// True if the file may be on a file system that is not in memory.
    public var isDiskAllowed = false
    public var host = ""
    public var username = "oauth2"
    public var variable = "RINGBACK_TOKEN"

    public init(path: String, account: AccountName, format: TokenFileFormat) {
        self.path = path
        self.account = account
        self.format = format
    }

    /// A token is replaced when less than this of its life is left, or half of a shorter life.
    static let margin: Duration = .seconds(120)

    var query: SessionQuery {
        SessionQuery(key: key, kind: format == .idToken ? .idToken : .accessToken, minValid: KeptFile.margin)
    }
}

public struct KeptFileView: Sendable, Equatable {
    /// The state of a file. The raw values are those of the socket API.
    public enum State: String, Sendable, CaseIterable {
        /// The session or the provider has not been asked yet.
        case waiting
        case kept
        case signedOut = "signed_out"
        case locked
        /// The `ttl` is over. The next sign-in begins another.
        case ended
        /// There is a problem that the user has to solve.
        case problem
    }

    public let file: KeptFile
    public let state: State
    /// What is wrong; also for a file with a current token that cannot be renewed now.
    public let detail: Reason?
    /// When the token expires or the `ttl` is over; nil without a file or a stated lifetime.
    public let expiresAt: WallInstant?
}

// A file counts as ours only if the digest of its content is in the record: no other is overwritten or removed.

/// The folder and the name of a kept file. Names are relative to the open folder, which may be replaced between steps.
final class FilePlace {
    enum Occupant: Equatable {
        case nothing
        /// A file of ours, and the digest of its content.
        case ours([UInt8])
        case foreign(FileReason)
    }

    /// A larger file is not ours.
    private static let maxSize = 256 * 1_024
    /// `f_type` of tmpfs and ramfs (statfs(2)).
    private static let memoryTypes: Set<UInt32> = [0x0102_1994, 0x8584_58F6]

    private let path: String
    private let name: String
    private let folder: Int32
    /// The file that ``prepare(_:)`` made, until it is renamed.
    private var prepared: stat?

    /// Opens the folder. It and all folders above it must belong to the user or to root, and must not be writable by
    /// others unless they have the sticky bit.
    init(_ path: String) throws(FileReason) {
        let slash = path.lastIndex(of: "/") ?? path.startIndex
        let folder = slash == path.startIndex ? "/" : String(path[..<slash])
        self.path = path
        name = String(path[path.index(after: slash)...])
        do throws(DirectoryTrust.Failure) {
            try DirectoryTrust.check(folder)
        } catch {
            throw FileReason("\(path) is not kept: \(error.path) \(error.reason.sentence).")
        }
        self.folder = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        let code = errno
        guard self.folder >= 0 else {
            throw FileReason("\(path) is not kept: \(folder): \(FileReason.text(of: code)).")
        }
    }

    deinit { if folder >= 0 { close(folder) } }

    var isInMemory: Bool { FilePlace.memoryTypes.contains(clinux_file_system_of(folder)) }

    func occupant(_ known: Set<[UInt8]>) -> Occupant {
        var status = stat()
        return occupant(known, &status)
    }

    private func occupant(_ known: Set<[UInt8]>, _ status: inout stat) -> Occupant {
        let file = unsafe openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        let code = errno
        guard file >= 0 else {
            if code == ENOENT { return .nothing }
            return .foreign(
                code == ELOOP ? FileReason("\(path) is a symbolic link.") : .not("read", path, errno: code))
        }
        defer { close(file) }
        guard unsafe fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return .foreign(FileReason("\(path) is not a regular file."))
        }
        guard status.st_uid == geteuid() else {
            return .foreign(FileReason("\(path) belongs to another user."))
        }
        if let digest = FilePlace.digest(file, size: Int(status.st_size)), known.contains(digest) {
            return .ours(digest)
        }
        return .foreign(FileReason("\(path) was written by another program."))
    }

    private static func digest(_ file: Int32, size: Int) -> [UInt8]? {
        guard size <= maxSize else { return nil }
        var bytes = [UInt8](repeating: 0, count: size + 1)
        var filled = 0
        while filled < bytes.count {
            let wanted = bytes.count - filled
            let count = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe pread(file, buffer.baseAddress.map { unsafe $0 + filled }, wanted, off_t(filled))
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            guard count > 0 else { break }
            filled += count
        }
        return filled == size ? Digest.sha256(bytes[..<filled]) : nil
    }

    // MARK: Changing

    private var temporary: String { ".\(name).ringback" }

    /// Writes the new content beside the file, mode 0600. ``publish(over:)`` or ``discard()`` follows.
    func prepare(_ content: [UInt8]) throws(FileReason) {
        removeLeftover()
        let file = unsafe openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw .not("written", path, errno: errno) }
        defer { close(file) }
        var status = stat()
        if unsafe fstat(file, &status) == 0 { prepared = status }
        var written = 0
        while written < content.count {
            let count = unsafe content.withUnsafeBytes { buffer in
                unsafe write(file, buffer.baseAddress.map { unsafe $0 + written }, content.count - written)
            }
            let code = errno
            if count < 0, code == EINTR { continue }
            guard count > 0 else {
                discard()
                throw .not("written", path, errno: code)
            }
            written += count
        }
        // The umask may have cleared bits. After a power failure an unsynced file could be empty and not count as ours.
        guard fchmod(file, 0o600) == 0, isInMemory || fsync(file) == 0 else {
            let code = errno
            discard()
            throw .not("written", path, errno: code)
        }
    }

    /// Renames the prepared file to the path, which must be free or have a file of ours.
    func publish(over known: Set<[UInt8]>) throws(FileReason) {
        let code: Int32
        switch occupant(known) {
        case .foreign(let reason):
            discard()
            throw reason
        case .nothing: code = unsafe clinux_rename_new(folder, temporary, name)
        case .ours: code = unsafe renameat(folder, temporary, folder, name) == 0 ? 0 : errno
        }
        guard code == 0 else {
            discard()
            throw .not("written", path, errno: code)
        }
        prepared = nil
    }

    func discard() {
        if let prepared { _ = unlink(temporary, prepared) }
        prepared = nil
    }

    /// Removes a temporary file that a killed daemon left, recognized by name and mode: it may have a token.
    func removeLeftover() {
        guard let found = status(temporary), found.st_mode & S_IFMT == S_IFREG, found.st_mode & 0o077 == 0,
            found.st_uid == geteuid(), found.st_nlink == 1
        else { return }
        _ = unlink(temporary, found)
    }

    private func status(_ name: String) -> stat? {
        var status = stat()
        return unsafe fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status : nil
    }

    /// Removes a name if it still is this file's. Returns an `errno`, or 0.
    private func unlink(_ name: String, _ file: stat) -> Int32 {
        guard let found = status(name), found.st_dev == file.st_dev, found.st_ino == file.st_ino else { return 0 }
        return unsafe unlinkat(folder, name, 0) == 0 ? 0 : errno
    }

    /// - Returns: what was there.
    func remove(_ known: Set<[UInt8]>) throws(FileReason) -> Occupant {
        var file = stat()
        let occupant = occupant(known, &file)
        guard case .ours = occupant else { return occupant }
        let code = unlink(name, file)
        guard code == 0 || code == ENOENT else { throw .not("removed", path, errno: code) }
        return occupant
    }
}

/// The state of one kept file. It is not stored across restarts.
struct FileState {
    let file: KeptFile
    /// The digests of the contents that Ringback may have written to the path.
    var known: Set<[UInt8]> = []
    /// When the file's content expires; nil if there is no file of ours, or if the token has no stated lifetime.
    var expiry: Deadline?
    var isWritten = false
    var beganAt: WallInstant?
    var state = KeptFileView.State.waiting
    var detail: Reason?
    var due: BootInstant
    /// Increased when the session is closed, replaced or hidden. A token that was requested before is not written.
    var generation = 0
    /// Increased whenever a token should be requested again.
    var wakes = 0
    var isAsking = false
    /// The number of consecutive requests that failed or returned no newer token.
    var failures = 0

    /// The interval between checks of each file. A file that another program removed is then written again.
    static let interval: Duration = .seconds(30)
    private static let pauses: [Duration] = [.seconds(15), .seconds(30), .seconds(60), .seconds(300), .seconds(600)]

    init(_ file: KeptFile, due: BootInstant) {
        self.file = file
        self.due = due
    }

    mutating func wake(at now: BootInstant) {
        wakes += 1
        due = now
    }

    /// Schedules the next request after a failure: with a growing pause, but no later than the token expires.
    mutating func postpone(at now: BootInstant) {
        let pause = FileState.pauses[min(failures, FileState.pauses.count - 1)]
        failures += 1
        due = now + pause
        if let end = expiry?.boot, isWritten, end > now { due = min(due, end) }
    }

    /// Schedules the request that causes a refresh: when less than ``KeptFile/margin`` of the lifetime is left.
    mutating func plan(_ token: AccessToken, isNew: Bool, at now: BootInstant) {
        let remaining = token.remaining(at: now)
        let lifetime = token.lifetime ?? remaining ?? .zero
        let margin = lifetime <= KeptFile.margin * 2 ? lifetime / 2 : KeptFile.margin
        guard let remaining, !isNew, remaining < margin else {
            failures = 0
            due = now + FileState.interval
            if let remaining { due = min(due, now + max(remaining - margin + .seconds(1), .seconds(1))) }
            return
        }
        // The token is about to expire and the provider returned no newer one.
        postpone(at: now)
    }

    /// The file's entry for the record in the state directory; nil if it needs none.
    func entry(by clock: BrokerClock) -> FileEntry? {
        guard isWritten || beganAt != nil || !known.isEmpty else { return nil }
        return FileEntry(digests: known, expiresAt: expiry?.wall(by: clock).seconds, beganAt: beganAt?.seconds)
    }

    /// Removes the file if it is ours, and sets the state. If another program wrote it or the removal fails, which is
    /// tried again, the state is `problem` and ``detail`` has the reason.
    mutating func remove(becoming state: KeptFileView.State, at now: BootInstant) {
        self.state = state
        detail = nil
        due = now + FileState.interval
        guard !known.isEmpty else { return }
        do throws(FileReason) {
            if case .foreign(let reason) = try FilePlace(file.path).remove(known) {
                self.state = .problem
                detail = .file(reason)
            }
            known = []
            isWritten = false
            expiry = nil
        } catch {
            self.state = .problem
            detail = .file(error)
        }
    }

    func view(by clock: BrokerClock) -> KeptFileView {
        KeptFileView(
            file: file, state: state, detail: detail,
            expiresAt: isWritten ? expiry.map { $0.wall(by: clock) } : nil)
    }

    /// The session has ended or is hidden: removes the file. The result of a pending request is ignored.
    mutating func end(becoming state: KeptFileView.State, at now: BootInstant, keepsBeginning: Bool = false) {
        generation += 1
        failures = 0
        if !keepsBeginning, state == .signedOut { beganAt = nil }
        remove(becoming: state, at: now)
    }

    /// There is no new token, or it cannot be written. The old one stays in the file until it expires.
    mutating func fail(_ reason: Reason, at now: BootInstant) {
        let hasEnded = expiry.map { $0.remaining(at: now) == .zero } ?? false
        if hasEnded {
            remove(becoming: .problem, at: now)
            // A removal that failed has a reason of its own.
            detail = detail ?? reason
        } else {
            state = isWritten ? .kept : .problem
            detail = reason
        }
        postpone(at: now)
    }
}

/// Why a file has no current token, for the user.
struct FileReason: Error, Equatable {
    let sentence: String
    init(_ sentence: String) { self.sentence = sentence }

    /// `done` is the participle of what failed.
    static func not(_ done: String, _ path: String, errno code: Int32) -> FileReason {
        FileReason("\(path) cannot be \(done): \(text(of: code)).")
    }

    static func text(of code: Int32) -> String { unsafe String(cString: strerror(code)) }
}

extension Reason {
    static func file(_ reason: FileReason) -> Reason { .stated(reason.sentence) }
}

extension KeptFile {
    /// The content of the file. A token alone has no line break: the libraries of cloud services send the whole file.
    ///
    /// - Throws: ``FileReason`` for a token with bytes outside 0x21 to 0x7E: they could change the line's meaning.
    func content(_ issued: IssuedToken, expiresAt: WallInstant?) throws(FileReason) -> [UInt8] {
        let excess = key.excess(of: issued.token)
        guard excess.isEmpty else {
            throw FileReason(
                "The provider of \(account) issued a token with more scope than the configuration names for the file "
                    + "(\(excess.joined(separator: " "))).")
        }
        // Who reads the file cannot make the proofs that a server wants with the token (RFC 9449).
        guard !issued.token.isBound else {
            throw FileReason(
                "The token of \(account) is bound to a key (DPoP): no program can use it from a file. If the provider "
                    + "issues Bearer tokens too, set dpop = \"off\" for the account.")
        }
        let bytes = issued.token.value.revealedBytes()
        guard !bytes.isEmpty, bytes.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw FileReason("The token of \(account) has characters that are not allowed in a token.")
        }
        let token = String(decoding: bytes, as: UTF8.self)
        switch format {
        case .token, .idToken: return Array(bytes)
        case .header:
            let type = issued.token.type
            guard type.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                throw FileReason("The type of \(account)'s token has characters that no type has.")
            }
            return Array("Authorization: \(type.lowercased() == "bearer" ? "Bearer" : type) \(token)\n".utf8)
        case .netrc:
            do throws(AdapterFailure) {
                return Array("\(try TokenLine.netrc(host: host, user: username, token: token))\n".utf8)
            } catch {
                throw FileReason(error.reason)
            }
        case .env: return Array("\(TokenLine.assignment(to: variable, token))\n".utf8)
        case .json:
            let object: JSONObject = [
                "account": account.rawValue, "access_token": token, "token_type": issued.token.type,
                "scope": issued.scope, "issuer": issued.issuer, "expires_at": expiresAt?.seconds,
            ]
            return JSON.object(object).serialized() + [UInt8(ascii: "\n")]
        }
    }
}
