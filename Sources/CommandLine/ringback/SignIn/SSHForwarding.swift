import Glibc
import RingbackClient
import Terminal

/// Over SSH the browser is on another machine, while the callback goes to the loopback of this one. A forwarded port
/// brings it here. The command is made of the connection's own values, and only of characters that no shell changes.
enum SSHForwarding {
    /// What to run where the browser is: `ssh -L 4711:127.0.0.1:4711 ada@192.0.2.7`. Nil without an SSH connection, or
    /// for a callback that does not come to a port of this machine.
    static func line(for redirectURI: String) -> ShownCommand? {
        guard let connection = SocketPlace.variable("SSH_CONNECTION"), let user = userName() else { return nil }
        return line(for: redirectURI, connection: connection, user: user)
    }

    /// - Parameter connection: the client's address and port, the server's address and port.
    static func line(for redirectURI: String, connection: String, user: String) -> ShownCommand? {
        let words = connection.split(separator: " ")
        guard words.count == 4, let callback = LoopbackURL(redirectURI), isPlain(user) else { return nil }
        var host = words[2]
        // An IPv4 address as a dual-stack server writes it.
        if host.lowercased().hasPrefix("::ffff:"), host.contains(".") { host = host.dropFirst("::ffff:".count) }
        guard isAddress(host), let port = UInt16(words[3]), port > 0 else { return nil }
        let target = callback.isIPv6 ? "[::1]" : "127.0.0.1"
        let own = callback.isIPv6 ? "[::1]:" : ""
        let forwarding = "\(own)\(callback.port):\(target):\(callback.port)"
        return ShownCommand(
            words: ["ssh", "-L", forwarding, "\(user)@\(host)"] + (port == 22 ? [] : ["-p", "\(port)"]))
    }

    /// An IPv4 or IPv6 address, the latter perhaps with a zone. If sshd runs on a pipe it knows no address, and says
    /// `UNKNOWN`.
    private static func isAddress(_ text: Substring) -> Bool {
        guard text.contains(".") || text.contains(":"), !text.hasPrefix("-") else { return false }
        return text.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF) || ":.%-_".utf8.contains(byte)
        }
    }

    private static func isPlain(_ name: String) -> Bool {
        !name.isEmpty && !name.hasPrefix("-")
            && name.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF) || "._-".utf8.contains(byte)
            }
    }

    /// By the uid, from /etc/passwd. Users of a directory service are not in it; sshd has set their name.
    private static func userName() -> String? {
        name(of: getuid(), in: SSHForwarding.passwd()) ?? SocketPlace.variable("USER")
            ?? SocketPlace.variable("LOGNAME")
    }

    static func name(of uid: UInt32, in passwd: String) -> String? {
        for line in passwd.split(separator: "\n") {
            let fields = line.split(separator: ":", omittingEmptySubsequences: false)
            if fields.count >= 3, UInt32(fields[2]) == uid { return String(fields[0]) }
        }
        return nil
    }

    private static func passwd() -> String {
        let file = unsafe open("/etc/passwd", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { close(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while bytes.count < 4 << 20 {
            let count = unsafe read(file, &buffer, buffer.count)
            guard count > 0 else { break }
            bytes += buffer[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
