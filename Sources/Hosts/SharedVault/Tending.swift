/// Does again and again what is to be done, when it is due or when it is woken.
struct Tending: Sendable {
    let wakes: (stream: AsyncStream<Void>, continuation: AsyncStream<Void>.Continuation)

    /// - Parameter tend: returns how long to wait for the next time; nil: until it is woken.
    func run(_ tend: @Sendable () async -> Duration?) async {
        var timer: Task<Void, Never>?
        var news = wakes.stream.makeAsyncIterator()
        while !Task.isCancelled {
            timer?.cancel()
            timer = await tend().map { [wakes] pause in
                Task { if (try? await Task.sleep(for: pause)) != nil { wakes.continuation.yield() } }
            }
            // News end a pause.
            if await news.next() == nil { break }
        }
        timer?.cancel()
    }
}
