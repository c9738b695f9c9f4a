import Glibc
import RingbackBase
import RingbackClient

/// A restricted socket that the daemon closes when this process ends, however it does. After a restart of the daemon it is
/// made again, in the same directory, since that is what the command sees.
final class RunSocket: Sendable {
    /// Alone in it is the socket.
    let directory: String
    private let order: JSONObject
    private let calls: BrokerCalls
    /// The daemon leaves a directory that is locked: a new one would not be the one that is mounted.
    private let lock: Int32

    /// - Parameter order: the body of the call, without `name` and `until`.
    init(_ order: JSONObject, _ calls: BrokerCalls) throws(RingbackError) {
        var order = order
        order["name"] = .string("run-\(getpid())-\(UInt32.random(in: 0 ... .max))")
        (self.order, self.calls) = (order, calls)
        let (socket, connection) = try calls.exposeWhileConnected(order)
        guard let directory = socket["directory"]?.string else {
            throw RingbackError(.badResponse, "The daemon's response names no directory of the restricted socket.")
        }
        self.directory = directory
        lock = unsafe open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard lock >= 0, flock(lock, LOCK_SH | LOCK_NB) == 0 else {
            throw RingbackError(.systemError, "The directory \(directory) of the restricted socket cannot be locked.")
        }
        nonisolated(unsafe) let first = connection
        guard BlockingThread.start(stackSize: 512 << 10, { [self] in unsafe keep(first) }) == 0 else {
            throw RingbackError(.systemError, "No thread can be started.")
        }
    }

    /// The pause before the daemon is asked again, in milliseconds.
    private static let pause: Int32 = 250

    private func keep(_ first: SocketConnection) -> Never {
        var connection: SocketConnection? = first
        while true {
            if let held = connection {
                var entry = pollfd(fd: held.descriptor, events: Int16(POLLIN), revents: 0)
                while unsafe poll(&entry, 1, -1) < 1 {}
            }
            // The daemon sends nothing more on it, so this is its end.
            connection = nil
            poll(nil, 0, RunSocket.pause)
            connection = try? calls.exposeWhileConnected(order).1
        }
    }

    /// The command has ended: the directory may go with the socket.
    func end() { flock(lock, LOCK_UN) }
}
