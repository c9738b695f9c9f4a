public import Glibc

public struct SystemError: Error, CustomStringConvertible {
    public let call: String
    public let code: Int32

    public init(call: String, code: Int32) {
        self.call = call
        self.code = code
    }

    public var description: String { "\(call): \(unsafe String(cString: strerror(code)))" }
}

public enum ServerPlace: Sendable {
    case unix(String)
    /// 127.0.0.1
    case ipv4(Int)
    /// ::1
    case ipv6(Int)

    /// A connected stream socket.
    ///
    /// - Throws: ``SystemError`` with `ECONNREFUSED` and the like.
    public func connect() throws(SystemError) -> Int32 {
        try unsafe openSocket("connect") { unsafe Glibc.connect($0, $1, $2) }
    }

    /// A stream socket that is bound to the place and does not listen yet. Port 0: a free one.
    public func bind() throws(SystemError) -> Int32 {
        try unsafe openSocket("bind") { descriptor, address, length in
            var yes: Int32 = 1
            if case .ipv6 = self { unsafe setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &yes, 4) }
            return unsafe Glibc.bind(descriptor, address, length)
        }
    }

    /// A stream socket that listens at the place. Port 0: at a free one.
    public func listen() throws(SystemError) -> Int32 {
        let descriptor = try bind()
        guard Glibc.listen(descriptor, 64) == 0 else {
            defer { close(descriptor) }
            throw SystemError(call: "listen", code: errno)
        }
        return descriptor
    }

    /// Opens a socket and gives it to a system call with the place as its address.
    private func openSocket(
        _ call: String, _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) throws(SystemError) -> Int32 {
        let family: Int32 =
            switch self {
            case .unix: AF_UNIX
            case .ipv4: AF_INET
            case .ipv6: AF_INET6
            }
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw SystemError(call: "socket", code: errno) }
        let code: Int32 = unsafe withAddress { address, length in
            unsafe body(descriptor, address, length) == 0 ? 0 : errno
        }
        guard code == 0 else {
            close(descriptor)
            throw SystemError(call: call, code: code)
        }
        return descriptor
    }

    /// Calls `body` with the place as an address of the system.
    public func withAddress<Value>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Value) -> Value {
        switch self {
        case .unix(let path):
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8.prefix(107)) }
            return unsafe ServerPlace.withRebound(&address, body)
        case .ipv4(let port):
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = in_port_t(truncatingIfNeeded: port).bigEndian
            address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
            return unsafe ServerPlace.withRebound(&address, body)
        case .ipv6(let port):
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = in_port_t(truncatingIfNeeded: port).bigEndian
            address.sin6_addr = in6addr_loopback
            return unsafe ServerPlace.withRebound(&address, body)
        }
    }

    private static func withRebound<Address, Value>(
        _ address: inout Address, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Value
    ) -> Value {
        unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe body($0, socklen_t(MemoryLayout<Address>.size))
            }
        }
    }
}

public func localPort(of descriptor: Int32) -> Int {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    _ = unsafe withUnsafeMutablePointer(to: &storage) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            unsafe getsockname(descriptor, $0, &length)
        }
    }
    return unsafe withUnsafeBytes(of: &storage) { Int(unsafe $0[2]) << 8 | Int(unsafe $0[3]) }
}

/// Sends all bytes; false if the other end has closed before.
public func sendAll(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
        let count = unsafe rest.withUnsafeBytes {
            unsafe send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return false }
        rest = rest.dropFirst(count)
    }
    return true
}

/// True if one of the events of poll(2) comes within the time.
public func hasEvent(_ events: Int32, on descriptor: Int32, within milliseconds: Int32) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
    return unsafe poll(&entry, 1, milliseconds) > 0
}
