/// Something that happens once, and can be waited for by any number of tasks.
public final class Event: Sendable {
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    public init() { (stream, continuation) = AsyncStream.makeStream() }

    public func happen() { continuation.finish() }

    /// Returns when it has happened, or the task was cancelled.
    public func wait() async { for await _ in stream {} }

    /// True if it happened within a minute.
    public func happened() async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                await self.wait()
                return !Task.isCancelled
            }
            group.addTask {
                try? await Task.sleep(for: .seconds(60))
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
    }
}
