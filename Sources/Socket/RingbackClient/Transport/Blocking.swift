import Glibc

/// Runs blocking work on a thread of its own. Tasks share one thread for each core, so a long poll there would stop
/// every task of the app.
package enum Blocking {
    /// Runs the work and returns its result. Cancelling the task interrupts the work, which ends with `cancelled`.
    static func run<Value: Sendable>(
        _ work: @escaping @Sendable (Interruption) throws(RingbackError) -> Value
    ) async throws(RingbackError) -> Value {
        let interruption = try Interruption()
        let result: Result<Value, RingbackError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let failure = start {
                    continuation.resume(
                        returning: Result { () throws(RingbackError) -> Value in try work(interruption) })
                }
                if failure != 0 { continuation.resume(returning: .failure(.system("pthread_create", failure))) }
            }
        } onCancel: {
            interruption.interrupt()
        }
        return try result.get()
    }

    /// Starts a thread: 0, or an errno.
    package static func start(_ body: @escaping @Sendable () -> Void) -> Int32 {
        var attributes = pthread_attr_t()
        unsafe pthread_attr_init(&attributes)
        defer { unsafe pthread_attr_destroy(&attributes) }
        unsafe pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        // The deepest recursion here is JSON of 32 levels at most.
        unsafe pthread_attr_setstacksize(&attributes, 512 << 10)
        let box = unsafe Unmanaged.passRetained(Box(body))
        var thread = pthread_t()
        let failure = unsafe pthread_create(
            &thread, &attributes,
            { argument in
                guard let argument = unsafe argument else { return nil }
                unsafe Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body()
                return nil
            }, box.toOpaque())
        if failure != 0 { unsafe box.release() }
        return failure
    }

    private final class Box: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
}
