internal import Glibc
internal import Synchronization

/// A thread that can be waited for. For what blocks: the threads of the shared pool are few.
public final class Thread: Sendable {
    private let identifier: Mutex<pthread_t?>

    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Starts it. Where the system has no more threads, `body` runs at once, on the caller's.
    public init(_ body: @escaping @Sendable () -> Void) {
        var thread = pthread_t()
        let context = unsafe Unmanaged.passRetained(Body(body)).toOpaque()
        let entry: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
            if let context = unsafe context { unsafe Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run() }
            return nil
        }
        if unsafe pthread_create(&thread, nil, entry, context) == 0 {
            identifier = Mutex(thread)
        } else {
            identifier = Mutex(nil)
            unsafe Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
        }
    }

    deinit { end { pthread_detach($0) } }

    public func join() { end { pthread_join($0, nil) } }

    private func end(_ how: (pthread_t) -> Int32) {
        let thread = identifier.withLock { identifier in
            defer { identifier = nil }
            return identifier
        }
        if let thread { _ = how(thread) }
    }
}

/// Starts a thread for something that blocks, and does not wait for it.
public func startThread(_ body: @escaping @Sendable () -> Void) { _ = Thread(body) }

/// Runs what blocks on a thread of its own, and waits for its result.
public func onThread<Value: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () throws(Failure) -> Value
) async throws(Failure) -> Value {
    let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
        startThread {
            do throws(Failure) {
                continuation.resume(returning: .success(try body()))
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
    }
    return try result.get()
}
