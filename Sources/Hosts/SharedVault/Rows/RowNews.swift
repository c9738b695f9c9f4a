internal import Synchronization

/// Rows of which a change was told, until they are looked at: each once, however often that was told.
final class RowNews: Sendable {
    private struct Told: Sendable {
        var keys: Set<RowKey> = []
        /// Any row may have changed.
        var isAll = false
    }

    private let told = Mutex(Told())
    private let signal = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// Nil: any row.
    func note(_ key: RowKey?) {
        told.withLock { told in
            if let key { told.keys.insert(key) } else { told.isAll = true }
        }
        signal.continuation.yield()
    }

    /// Waits for news. Nil stands for any row. Returns nil when there will be none. To be called by one task.
    func next() async -> [RowKey?]? {
        var signals = signal.stream.makeAsyncIterator()
        guard await signals.next() != nil else { return nil }
        let found = told.withLock { told in
            defer { told = Told() }
            return told
        }
        return found.isAll ? [nil] : Array(found.keys)
    }

    func finish() { signal.continuation.finish() }
}
