internal import Glibc

/// The file of a Unix socket, told by its device and inode: another program can put a socket of its own at the path, and that
/// one must not be removed.
package struct SocketFile: Sendable, Equatable {
    package let path: String
    package let device: UInt
    package let inode: UInt

    package init(path: String, device: UInt, inode: UInt) {
        self.path = path
        self.device = device
        self.inode = inode
    }

    /// The socket that is at a path now; nil if there is none of this user.
    package init?(at path: String) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK, status.st_uid == getuid() else {
            return nil
        }
        self.init(path: path, device: status.st_dev, inode: status.st_ino)
    }

    /// Removes the file, unless something else is at the path now.
    package func remove() {
        guard SocketFile(at: path) == self else { return }
        unsafe unlink(path)
    }

    /// True if a program listens at a path.
    package static func isLive(_ path: String) -> Bool {
        // A longer path is no socket's. It is refused where it is to be used.
        guard var address = address(of: path) else { return false }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC | O_NONBLOCK, 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        let code = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0 ? 0 : errno
            }
        }
        // EAGAIN: a program listens, and its backlog is full.
        return code == 0 || code == EAGAIN
    }

    /// The address of a path; nil if the path is too long.
    static func address(of path: String) -> sockaddr_un? {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return nil }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
        return address
    }
}
