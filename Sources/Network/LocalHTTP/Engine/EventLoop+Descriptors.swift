/// What gives way when the process has no free descriptor.
///
/// Attack: a client opens connections and sends nothing, to use up the descriptors.
extension EventLoop {
    /// A connection that was idle when ``candidates`` was made.
    struct Candidate {
        /// Its descriptor, and the generation of its registration.
        let index: Int
        let generation: UInt32
        let age: UInt64
        let isBlocked: Bool
    }

    /// Closes the descriptors of the known processes. If there are none, closes the oldest connection of any server that is
    /// not working on a complete request, see ``ConnectionRegistry/oldestIdle(now:)``. False if there is none.
    ///
    /// One pass over all connections finds the candidates for many calls. A connection that was busy then is not among
    /// them, until all of them are closed or busy.
    ///
    /// - Parameter other: a connection that must not be closed.
    func freeDescriptor(for other: HTTPConnection? = nil) -> Bool {
        if processes.giveUp() { return true }
        if dropCandidate(besides: other) { return true }
        let now = now
        guard now >= nextSearch else { return false }
        candidates = findCandidates()
        // Attack: a client keeps thousands of connections busy, so that each new one leads to a search.
        if candidates.isEmpty { nextSearch = now + ConnectionRegistry.searchPause }
        return dropCandidate(besides: other)
    }

    private func dropCandidate(besides other: HTTPConnection?) -> Bool {
        while let candidate = candidates.popLast() {
            let registration = registrations[candidate.index]
            guard registration.generation == candidate.generation, let connection = registration.connection,
                connection.isIdle, connection.isBlocked == candidate.isBlocked, connection !== other
            else { continue }
            connection.drop()
            return true
        }
        return false
    }

    /// The idle connections. The last one is the first to be closed: the oldest whose response has been sent.
    private func findCandidates() -> [Candidate] {
        var found: [Candidate] = []
        for (index, registration) in registrations.enumerated() {
            guard let connection = registration.connection, connection.isIdle else { continue }
            found.append(
                Candidate(
                    index: index, generation: registration.generation, age: connection.age,
                    isBlocked: connection.isBlocked))
        }
        return found.sorted { $0.isBlocked == $1.isBlocked ? $0.age > $1.age : $0.isBlocked }
    }
}
