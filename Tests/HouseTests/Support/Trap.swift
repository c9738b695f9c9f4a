import Glibc
import TestSupport

/// A port of 127.0.0.1 where nobody is expected: it knows whether somebody came.
final class Trap: Sendable {
    let port: Int
    private let descriptor: Int32

    init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        let bound = unsafe ServerPlace.ipv4(0).withAddress { [descriptor] address, length in
            unsafe bind(descriptor, address, length) == 0 && listen(descriptor, 16) == 0
        }
        guard descriptor >= 0, bound else { throw SystemError(call: "listen", code: errno) }
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isKnown = unsafe withUnsafeMutablePointer(to: &address) { [descriptor] pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe getsockname(descriptor, $0, &length) == 0
            }
        }
        guard isKnown else { throw SystemError(call: "getsockname", code: errno) }
        port = Int(UInt16(bigEndian: address.sin_port))
    }

    deinit { close(descriptor) }

    func hasVisitor(within bound: Duration = .zero) async throws -> Bool {
        try await onThread { [descriptor] in
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard unsafe poll(&entry, 1, Int32(bound / .milliseconds(1))) > 0 else { return false }
            let visitor = accept(descriptor, nil, nil)
            guard visitor >= 0 else { throw SystemError(call: "accept", code: errno) }
            close(visitor)
            return true
        }
    }
}
