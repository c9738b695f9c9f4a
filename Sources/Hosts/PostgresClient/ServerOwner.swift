// On this machine anybody may listen at a port that is free, for instance while the server is started again.

internal import CLinux
internal import Glibc

/// Who answers at the other end of a connection within this machine.
enum ServerOwner {
    static func isConnected(_ descriptor: Int32) -> Bool {
        var there = sockaddr_storage()
        return unsafe name(&there, of: descriptor, getpeername)
    }

    /// The uid that owns the other end of a connected socket; nil if the kernel does not tell, for instance because that
    /// end is closed.
    static func uid(of descriptor: Int32) -> UInt32? {
        var (here, there) = (sockaddr_storage(), sockaddr_storage())
        guard unsafe name(&here, of: descriptor, getsockname), unsafe name(&there, of: descriptor, getpeername) else {
            return nil
        }
        if Int32(there.ss_family) == AF_UNIX {
            var (pid, uid, gid): (pid_t, uid_t, gid_t) = (0, 0, 0)
            return unsafe clinux_peer_credentials(descriptor, &pid, &uid, &gid) == 0 ? uid : nil
        }
        guard let (address, port) = place(there), let (own, ownPort) = place(here), here.ss_family == there.ss_family
        else { return nil }
        var (uid, inode): (UInt32, UInt32) = (0, 0)
        // A socket without an inode belongs to no process: it is not accepted yet, or closed.
        guard unsafe clinux_tcp_socket_owner(Int32(here.ss_family), address, port, own, ownPort, &uid, &inode) == 0,
            inode != 0
        else { return nil }
        return uid
    }

    /// True for root, this user, the user `postgres`, and the one that the configuration names.
    static func isTrusted(_ uid: UInt32, configured: UInt32?) -> Bool {
        uid == 0 || uid == geteuid() || uid == configured || uid == databaseUser
    }

    private static var databaseUser: UInt32? {
        var entry = unsafe passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 16_384)
        guard unsafe getpwnam_r("postgres", &entry, &buffer, buffer.count, &found) == 0, unsafe found != nil else {
            return nil
        }
        return unsafe entry.pw_uid
    }

    private static func name(
        _ storage: inout sockaddr_storage, of descriptor: Int32,
        _ ask: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> Bool {
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return unsafe withUnsafeMutablePointer(to: &storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe ask(descriptor, $0, &length) == 0
            }
        }
    }

    /// The bytes of an address, and the port.
    private static func place(_ storage: sockaddr_storage) -> ([UInt8], UInt16)? {
        let bytes = unsafe withUnsafeBytes(of: storage) { unsafe Array($0) }
        let port = UInt16(bytes[2]) << 8 | UInt16(bytes[3])
        // sin_addr follows the port, sin6_addr the port and sin6_flowinfo.
        switch Int32(storage.ss_family) {
        case AF_INET: return (Array(bytes[4..<8]), port)
        case AF_INET6: return (Array(bytes[8..<24]), port)
        default: return nil
        }
    }
}
