internal import PostgresClient
internal import RingbackBase
internal import SharedVault
internal import Synchronization

final class RowChanges: Sendable {
    struct Pulse: Sendable, Equatable {
        /// One of them is another after any change.
        var numbers: [[UInt8]?]
        var untold: [UInt8]?
    }

    private struct State {
        var listeners: [Int: AsyncStream<RowKey?>.Continuation] = [:]
        var next = 0
        var slots: [String: RowKey] = [:]
        var pulse: Pulse?
        var isListening = false
        /// Since when there is a connection for changes; nil without one.
        var connectedAt: ContinuousClock.Instant?
        /// True if a notification came since the question.
        var wasNotified = false
    }

    private let state = Mutex(State())
    var connectedAt: ContinuousClock.Instant? { state.withLock { $0.connectedAt } }

    /// A new listener, from now on. If it falls behind, or the connection was made before, it gets "everything".
    func listen() -> AsyncStream<RowKey?> {
        let (stream, continuation) = AsyncStream<RowKey?>.makeStream(bufferingPolicy: .bufferingNewest(1_024))
        let number = state.withLock { state in
            defer { state.next += 1 }
            state.listeners[state.next] = continuation
            if state.connectedAt != nil { continuation.yield(nil) }
            return state.next
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { $0.listeners[number] = nil }
        }
        return stream
    }

    func remember(_ slots: [String: RowKey]) { state.withLock { $0.slots.merge(slots) { $1 } } }

    func noteConnection(listens: Bool) {
        state.withLock { state in
            (state.isListening, state.connectedAt) = (listens, .now)
            state.pulse = nil
            state.wasNotified = false
        }
        tell(nil)
    }

    /// There is no connection for changes. The nil shows a host without other queries whether the database is away.
    func noteLoss() {
        state.withLock { $0.connectedAt = nil }
        tell(nil)
    }

    /// A notification: a row's slot, or something that is not known. Then everything may have changed.
    func noteNotification(_ payload: String) {
        let key = state.withLock { state in
            state.wasNotified = true
            return state.slots[payload]
        }
        tell(key)
    }

    func note(_ pulse: Pulse) {
        let isChanged = state.withLock { state in
            defer {
                state.pulse = pulse
                state.wasNotified = false
            }
            guard let last = state.pulse, last != pulse else { return false }
            return last.untold != pulse.untold || !(state.isListening && state.wasNotified)
        }
        if isChanged { tell(nil) }
    }

    func finish() {
        let listeners = state.withLock { state in
            defer { state.listeners = [:] }
            return state.listeners.values
        }
        for listener in listeners { listener.finish() }
    }

    private func tell(_ key: RowKey?) {
        let listeners = state.withLock { Array($0.listeners.values) }
        for listener in listeners {
            if case .dropped = listener.yield(key) { listener.yield(nil) }
        }
    }
}

extension DatabaseReason {
    /// What a refused statement means for the rows.
    var ofRows: DatabaseReason {
        guard case .refused(let state) = self else { return self }
        return switch state {
        // No schema, no function, no table.
        case "3F000", "42883", "42P01": .noSchema
        // No right; no host (any more); a host that has not joined yet.
        case "42501", "RB002", "RB003": .notPermitted
        case "53100": .noRoom
        // The server ended a wait for a lock, or the statement: it has had no effect.
        case "55P03", "57014": .timedOut
        default: self
        }
    }
}

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

    /// `milliseconds` since 1970 by the server's clock; `begin` and `end`: times since boot, before and after.
    mutating func note(_ milliseconds: Int, from begin: Duration, to end: Duration) {
        let isBetter = span.map { end - begin <= $0 || end - readAt >= ServerClock.interval } ?? true
        guard isBetter, (0..<1 << 50).contains(milliseconds) else { return }
        boot = milliseconds - Int((begin + end) / 2 / .milliseconds(1))
        (span, readAt) = (end - begin, end)
    }
}
