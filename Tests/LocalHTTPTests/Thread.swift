import Glibc
import Synchronization

/// A thread that can be waited for, where a test must send and receive at once.
final class Thread: Sendable {
    private let identifier: Mutex<pthread_t>

    init(_ body: @escaping @Sendable () -> Void) {
        final class Box: Sendable {
            let body: @Sendable () -> Void
            init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        }
        var thread = pthread_t()
        let box = unsafe Unmanaged.passRetained(Box(body)).toOpaque()
        unsafe pthread_create(
            &thread, nil,
            { box in
                guard let box = unsafe box else { return nil }
                unsafe Unmanaged<Box>.fromOpaque(box).takeRetainedValue().body()
                return nil
            }, box)
        identifier = Mutex(thread)
    }

    func join() { identifier.withLock { _ = pthread_join($0, nil) } }
}

/// Runs what blocks on a thread of its own: those of the pool are for the handlers.
func offPool<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    let thread = Mutex<Thread?>(nil)
    let result = await withCheckedContinuation { continuation in
        let started = Thread { continuation.resume(returning: Result { try body() }) }
        thread.withLock { $0 = started }
    }
    thread.withLock { $0 }?.join()
    return try result.get()
}
