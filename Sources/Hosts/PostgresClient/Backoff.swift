/// How long nothing is tried after a failure: longer after each one, and never the same for many hosts.
struct Backoff: Sendable {
    private static let shortest: Duration = .milliseconds(250)
    private static let longest: Duration = .seconds(10)

    private var next = Backoff.shortest

    /// The time to wait now. Each call doubles the next one.
    mutating func wait() -> Duration {
        defer { next = min(next * 2, Backoff.longest) }
        return next * Double.random(in: 0.75...1.25)
    }

    mutating func reset() { next = Backoff.shortest }
}
