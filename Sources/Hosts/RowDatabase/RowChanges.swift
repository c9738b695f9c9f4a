internal import PostgresClient
internal import SharedVault
internal import Synchronization

/// Passes on which rows changed, to any number of listeners.
final class RowChanges: Sendable {
    /// What is asked for now and then.
    struct Pulse: Sendable, Equatable {
        /// One of them is another after any change.
        var numbers: [[UInt8]?]
        /// How many changes were not told.
        var untold: [UInt8]?
    }

    private struct State {
        var listeners: [Int: AsyncStream<RowKey?>.Continuation] = [:]
        var next = 0
        var slots: [String: RowKey] = [:]
        var pulse: Pulse?
        var isListening = false
        /// There is a connection for changes.
        var isConnected = false
        /// True if a notification came since the question.
        var wasNotified = false
    }

    private let state = Mutex(State())

    /// A new listener, from now on. If it falls behind, or the connection was made before, it gets "everything".
    func listen() -> AsyncStream<RowKey?> {
        let (stream, continuation) = AsyncStream<RowKey?>.makeStream(bufferingPolicy: .bufferingNewest(1_024))
        let number = state.withLock { state in
            defer { state.next += 1 }
            state.listeners[state.next] = continuation
            if state.isConnected { continuation.yield(nil) }
            return state.next
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { $0.listeners[number] = nil }
        }
        return stream
    }

    func remember(_ slots: [String: RowKey]) {
        state.withLock { $0.slots.merge(slots) { $1 } }
    }

    func noteConnection(listens: Bool) {
        state.withLock { state in
            (state.isListening, state.isConnected) = (listens, true)
            state.pulse = nil
            state.wasNotified = false
        }
        tell(nil)
    }

    /// There is no connection for changes. Who asks for the rows then learns whether the database is away: a host that has
    /// nothing else to ask would not know.
    func noteLoss() {
        state.withLock { $0.isConnected = false }
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
