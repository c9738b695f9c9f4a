import Glibc
import TestSupport

/// A port of 127.0.0.1 where nobody is expected: it knows whether somebody came.
final class Trap: Sendable {
    let port: Int
    private let descriptor: Int32

    init() throws {
        descriptor = try ServerPlace.ipv4(0).listen()
        port = localPort(of: descriptor)
    }

    deinit { close(descriptor) }

    func hasVisitor(within bound: Duration = .zero) async throws -> Bool {
        try await onThread { [descriptor] in
            guard hasEvent(POLLIN, on: descriptor, within: Int32(bound / .milliseconds(1))) else { return false }
            let visitor = accept(descriptor, nil, nil)
            guard visitor >= 0 else { throw SystemError(call: "accept", code: errno) }
            close(visitor)
            return true
        }
    }
}
