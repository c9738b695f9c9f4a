internal import HTTPMessages
internal import Synchronization

/// One request whose handler is running, and the connection to which its response is written.
final class Exchange: Sendable {
    let request: ServerRequest
    let connection: HTTPConnection
    private let progress = Mutex(Progress())

    private struct Progress {
        var hasClientLeft = false
        var work: Task<Void, Never>?
    }

    init(request: ServerRequest, connection: HTTPConnection) {
        self.request = request
        self.connection = connection
    }

    /// Runs the handler and sends its response. The handler is cancelled if the caller is cancelled or the client
    /// disconnects.
    func perform(_ handler: @escaping @Sendable (ServerRequest) async -> ServerResponse) async {
        let work = Task { await send(handler(request)) }
        let isTooLate = progress.withLock { progress in
            progress.work = work
            return progress.hasClientLeft
        }
        if isTooLate { work.cancel() }
        await withTaskCancellationHandler {
            await work.value
        } onCancel: {
            work.cancel()
        }
        progress.withLock { $0.work = nil }
    }

    /// Cancels the handler. Called when the client has disconnected.
    func clientLeft() {
        let work = progress.withLock { progress in
            progress.hasClientLeft = true
            return progress.work
        }
        // Outside the lock, because cancellation handlers may run here synchronously.
        work?.cancel()
    }

    private func send(_ response: ServerResponse) async {
        let isHead = request.method == "HEAD"
        onLoop { $0.send(response, of: $1, isHead: isHead) }
        guard case .stream(let stream) = response.body else { return }
        if !isHead {
            for await bytes in stream {
                guard await write(bytes), !Task.isCancelled else { break }
            }
        }
        onLoop { $0.finishStream(of: $1) }
    }

    private func onLoop(_ body: @escaping @Sendable (HTTPConnection, Exchange) -> Void) {
        connection.loop.execute { [self] in body(connection, self) }
    }

    /// Returns true after the kernel has accepted the bytes, false if the client has disconnected.
    private func write(_ bytes: [UInt8]) async -> Bool {
        await withCheckedContinuation { written in
            onLoop { $0.writeStream(bytes, of: $1) { written.resume(returning: $0) } }
        }
    }
}
