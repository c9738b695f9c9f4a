internal import BrokerCore

/// Counts equal failed refreshes and equal failed requests for downscoped tokens, so that they make at most one line of
/// the audit log in five minutes. Attack: a program behind an exposed socket requests a scope that the provider refuses,
/// again and again. A line for each request would push the other entries out of the log.
struct RepeatedFailures: Sendable {
    struct Failure: Hashable {
        /// The event of its line.
        let event: String
        let account: AccountName
        let code: String
        let providerCode: String?
    }
    private struct Entry {
        /// When the last line was written.
        var writtenAt: WallInstant
        /// The failures since then.
        var count = 0
    }

    /// The time between two lines of equal failures.
    static let interval: Duration = .seconds(300)
    /// How many different failures are counted at most.
    static let most = 1_024

    private var entries: [Failure: Entry] = [:]

    /// Returns for how many failures a line is to be written, this one included; nil for no line now.
    mutating func note(_ failure: Failure, at now: WallInstant) -> Int? {
        if var entry = entries[failure], now >= entry.writtenAt, now - entry.writtenAt < RepeatedFailures.interval {
            entry.count += 1
            entries[failure] = entry
            return nil
        }
        let count = (entries[failure]?.count ?? 0) + 1
        // Failures of removed accounts stay here until the limit is reached.
        if entries.count >= RepeatedFailures.most { entries = [:] }
        entries[failure] = Entry(writtenAt: now)
        return count
    }
}
