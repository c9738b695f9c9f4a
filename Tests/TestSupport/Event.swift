/// Something that happens once, and can be waited for by any number of tasks.
public final class Event: Sendable {
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    public init() { (stream, continuation) = AsyncStream.makeStream() }
    public func happen() { continuation.finish() }

    /// Returns when it has happened, or the task was cancelled.
    public func wait() async { for await _ in stream {} }

    /// Waits for it. False if the task was cancelled before, as by the time limit of a suite.
    public func happened() async -> Bool {
        await wait()
        return !Task.isCancelled
    }
}
