import Glibc
import MCPBridge
import RingbackClient

/// Where `ringback-relay` listens, beside the daemon's socket. It is started when nobody listens there.
final class RelayPlace {
    private let daemon: String
    private let socket: String
    /// On an exposed socket the daemon starts the relay, on its own machine.
    private let isExposed: Bool

    /// How long its start may take.
    private static let startBound = Duration.seconds(5)

    init(daemon: String, isExposed: Bool = false) throws(RingbackError) {
        self.isExposed = isExposed
        // The relay has another working directory.
        guard let path = RelayPlace.absolute(daemon) else {
            throw RingbackError(.noDaemon, "The path of the daemon's socket is too long: \(daemon)")
        }
        self.daemon = path
        socket = RelaySocket.path(beside: path)
    }

    private static func absolute(_ path: String) -> String? {
        if path.hasPrefix("/") { return path }
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        guard unsafe getcwd(&buffer, buffer.count) != nil else { return nil }
        let directory = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return String(decoding: directory, as: UTF8.self) + "/" + path
    }

    /// A connection to the relay.
    ///
    /// - Throws: `relay_missing` if it cannot be started, and as ``SocketConnection`` does.
    func connect() throws(RingbackError) -> SocketConnection {
        let end = ContinuousClock.now + RelayPlace.startBound
        var isStarted = false
        while true {
            do throws(RingbackError) {
                return try SocketConnection(unixPath: socket, deadline: end)
            } catch {
                guard error.kind == .noDaemon, ContinuousClock.now < end else { throw error }
            }
            if isExposed {
                poll(nil, 0, 20)
            } else if !isStarted {
                try start(until: end)
                isStarted = true
            } else {
                // Another one is being started, or is about to end.
                poll(nil, 0, 20)
                isStarted = false
            }
        }
    }

    /// Starts it and waits until it listens, or has ended because another one does.
    private func start(until end: ContinuousClock.Instant) throws(RingbackError) {
        let pipe = try Pipe()
        let words = [Programs.path("ringback-relay"), "--socket", socket, "--daemon", daemon]
        guard let pid = Subprocess.start(words, output: .descriptor(pipe.writeEnd), errors: .nothing) else {
            throw RingbackError(
                "relay_missing", "ringback-relay cannot be started: install it beside ringback, or in PATH.")
        }
        _ = Subprocess.forget(pid)
        pipe.closeWriteEnd()
        _ = pipe.read(until: end)
    }
}
