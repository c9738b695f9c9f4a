/// The deadlines of a connection: for receiving a request, for sending a response, and for lingering.
extension HTTPConnection {
    /// The maximum time in nanoseconds and the maximum number of bytes for which a lingering connection discards input.
    private static let lingerTimeout: Int64 = 2_000_000_000
    private static let maxLingering = 4 << 20

    /// Closes the connection, or responds 408, if a deadline has passed.
    func check(at now: Int64) {
        if let writeDeadline, writeDeadline < now { return drop() }
        if let deadline, deadline < now {
            self.deadline = nil
            switch phase {
            case .reading:
                refuse(408)
                turn()
            // While the response is still being sent, only `writeDeadline` counts. Start this deadline again.
            case .lingering where isBlocked: startDeadline(in: HTTPConnection.lingerTimeout)
            case .lingering: return drop()
            case .answering, .closing, .closed: break
            }
        }
        let next = min(deadline ?? .max, writeDeadline ?? .max)
        if next < .max { loop.schedule(self, at: next) }
    }

    func startDeadline() {
        startDeadline(in: server.limits.requestTimeout.nanoseconds)
    }

    private func startDeadline(in time: Int64) {
        let due = loop.now + time
        deadline = due
        loop.schedule(self, at: due)
    }

    /// Starts the deadline for sending. Called when the kernel has not accepted all bytes of a response.
    func startWriteDeadline() {
        let due = loop.now + server.limits.writeTimeout.nanoseconds
        writeDeadline = due
        loop.schedule(self, at: due)
    }

    func clearWriteDeadline() { writeDeadline = nil }

    /// Starts to discard everything that the client sends from now on, see ``Phase/lingering(_:)``.
    func linger() {
        // The write may have found that the client has disconnected.
        guard number >= 0 else { return }
        phase = .lingering(HTTPConnection.maxLingering)
        startDeadline(in: HTTPConnection.lingerTimeout)
        reader.discard()
        endsOutput = true
    }
}

extension Duration {
    /// The duration in nanoseconds, at most about 95 years, so that adding it to an instant does not overflow.
    fileprivate var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return min(seconds, 3_000_000_000) * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
