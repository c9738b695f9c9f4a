import Synchronization

/// A value that is set once, before it is read.
final class OnceBox<Value: Sendable>: Sendable {
    private let content = Mutex<Value?>(nil)

    var value: Value? { content.withLock { $0 } }

    func set(_ value: Value) { content.withLock { $0 = $0 ?? value } }
}
