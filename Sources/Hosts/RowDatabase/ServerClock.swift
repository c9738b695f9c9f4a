/// The server's clock, against this machine's time since boot.
struct ServerClock: Sendable {
    /// What it showed when this machine was booted, in milliseconds since 1970; nil if it is not known.
    private(set) var boot: Int?
    private var readAt: Duration = .zero
    /// How long the reading took: nobody knows when in that time it was made.
    private var span: Duration?

    /// After that time any other reading is better: either clock may run too fast, or may have been set.
    private static let interval: Duration = .seconds(600)

    /// There is another connection, perhaps to another server: any other reading is better.
    mutating func readAgain() { span = nil }

    /// - Parameters:
    ///   - milliseconds: what the server's clock showed, since 1970.
    ///   - begin: the time since boot when it was asked.
    ///   - end: the time since boot when it had answered.
    mutating func note(_ milliseconds: Int, from begin: Duration, to end: Duration) {
        let isBetter = span.map { end - begin <= $0 || end - readAt >= ServerClock.interval } ?? true
        guard isBetter, (0..<1 << 50).contains(milliseconds) else { return }
        boot = milliseconds - Int((begin + end) / 2 / .milliseconds(1))
        (span, readAt) = (end - begin, end)
    }
}
