// The place of a kept file. A file counts as ours only if the digest of its content is in the record. Any other file
// was written by another program and is neither overwritten nor removed.

internal import CLinux
internal import Cryptography
internal import Glibc
internal import SessionVault

/// The folder and the name of a kept file. Names are relative to the open folder: if the folder is replaced between two
/// steps, both steps still use the same folder.
final class FilePlace {
    /// What is at the path.
    enum Standing: Equatable {
        case nothing
        /// A file of ours, and the digest of its content.
        case ours([UInt8])
        /// Something else.
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
            throw FileReason.folderOpenToOthers(path: path, error)
        }
        self.folder = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        let code = errno
        guard self.folder >= 0 else {
            throw .folderNotOpened(path: path, folder: folder, errno: code)
        }
    }

    deinit { if folder >= 0 { close(folder) } }

    /// True if the folder is on a file system in memory.
    var isInMemory: Bool { FilePlace.memoryTypes.contains(clinux_file_system_of(folder)) }

    /// What is at the path.
    ///
    /// - Parameter known: the digests of contents that are ours.
    func standing(_ known: Set<[UInt8]>) -> Standing { look(known).standing }

    /// What is at the path, and which file it is.
    private func look(_ known: Set<[UInt8]>) -> (standing: Standing, file: stat) {
        var status = stat()
        return (standing(known, &status), status)
    }

    private func standing(_ known: Set<[UInt8]>, _ status: inout stat) -> Standing {
        let file = unsafe openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        let code = errno
        guard file >= 0 else {
            if code == ENOENT { return .nothing }
            return .foreign(code == ELOOP ? .symbolicLink(path: path) : .notRead(path: path, errno: code))
        }
        defer { close(file) }
        guard unsafe fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return .foreign(.notRegular(path: path))
        }
        guard status.st_uid == geteuid() else { return .foreign(.ofOtherUser(path: path)) }
        if let digest = FilePlace.digest(file, size: Int(status.st_size)), known.contains(digest) {
            return .ours(digest)
        }
        return .foreign(.ofOtherProgram(path: path))
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

    /// The name of the new file until it is renamed.
    private var temporary: String { ".\(name).ringback" }

    /// Writes the new content beside the file, mode 0600. ``publish(over:)`` or ``discard()`` follows.
    func prepare(_ content: [UInt8]) throws(FileReason) {
        removeLeftover()
        let file = unsafe openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw .notWritten(path: path, errno: errno) }
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
                throw .notWritten(path: path, errno: code)
            }
            written += count
        }
        // Set the mode again, because the umask may have cleared bits. On a disk, sync: after a power failure the file
        // could be empty and would then not count as ours.
        guard fchmod(file, 0o600) == 0, isInMemory || fsync(file) == 0 else {
            let code = errno
            discard()
            throw .notWritten(path: path, errno: code)
        }
    }

    /// Renames the prepared file to the path, which must be free or have a file of ours.
    ///
    /// - Parameter known: the digests of contents that are ours.
    func publish(over known: Set<[UInt8]>) throws(FileReason) {
        let code: Int32
        switch standing(known) {
        case .foreign(let reason):
            discard()
            throw reason
        case .nothing: code = unsafe clinux_rename_new(folder, temporary, name)
        case .ours: code = unsafe renameat(folder, temporary, folder, name) == 0 ? 0 : errno
        }
        guard code == 0 else {
            discard()
            throw .notWritten(path: path, errno: code)
        }
        prepared = nil
    }

    /// Removes the file that was prepared.
    func discard() {
        if let prepared { _ = unlink(temporary, prepared) }
        prepared = nil
    }

    /// Removes a temporary file that a killed daemon left: it may have a token, or the beginning of one. No record names its
    /// content, so it is told by its name and by the mode with which it was made.
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

    /// Removes the file if it is ours.
    ///
    /// - Parameter known: the digests of contents that are ours.
    /// - Returns: what was there.
    func remove(_ known: Set<[UInt8]>) throws(FileReason) -> Standing {
        let (standing, file) = look(known)
        guard case .ours = standing else { return standing }
        let code = unlink(name, file)
        guard code == 0 || code == ENOENT else { throw .notRemoved(path: path, errno: code) }
        return standing
    }
}
