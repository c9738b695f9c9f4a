/// The server's clock, against this machine's time since boot.
struct ServerClock: Sendable {
    /// What it showed when this machine was booted, in milliseconds since 1970; nil if it is not known.
    private(set) var boot: Int?
    private var readAt: Duration?

    /// After that time it is read again: either clock may run too fast, or may have been set.
    private static let interval: Duration = .seconds(600)
    /// A reading that took longer is not used: nobody knows when it was made.
    private static let longest: Duration = .seconds(1)

    /// - Parameter now: the time since boot.
    func isDue(at now: Duration) -> Bool { readAt.map { now - $0 >= ServerClock.interval } ?? true }

    /// There is another connection, perhaps to another server.
    mutating func readAgain() { readAt = nil }

    /// - Parameters:
    ///   - milliseconds: what the server's clock shows, since 1970.
    ///   - begin: the time since boot when it was asked.
    ///   - end: the time since boot when it had answered.
    mutating func note(_ milliseconds: Int, from begin: Duration, to end: Duration) {
        guard end - begin <= ServerClock.longest, (0..<1 << 50).contains(milliseconds) else { return }
        boot = milliseconds - Int((begin + end) / 2 / .milliseconds(1))
        readAt = end
    }
}
