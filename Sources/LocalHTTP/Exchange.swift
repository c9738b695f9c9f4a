internal import HTTPMessages
internal import NIOCore
internal import Synchronization

/// One request while its handler runs, and the connection that its response is written to.
final class Exchange: Sendable {
    private let request: ServerRequest
    private let connection: NIOLoopBound<HTTPConnection>
    private let progress = Mutex(Progress())

    private struct Progress {
        var hasClientLeft = false
        var work: Task<Void, Never>?
    }

    init(request: ServerRequest, connection: NIOLoopBound<HTTPConnection>) {
        self.request = request
        self.connection = connection
    }

    /// Runs the handler and sends its response. The handler is cancelled if the caller is cancelled or the client
    /// disconnects.
    func perform(_ handler: @escaping HTTPServer.Handler) async {
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

    /// The client closed the connection: cancels the handler.
    func clientLeft() {
        let work = progress.withLock { progress in
            progress.hasClientLeft = true
            return progress.work
        }
        // Outside the lock, because cancellation handlers may run here synchronously.
        work?.cancel()
    }

    private func send(_ response: ServerResponse) async {
        onLoop { [request] in $0.send(response, to: request) }
        guard case .stream(let stream) = response.body else { return }
        if request.method != "HEAD" {
            for await bytes in stream {
                guard await write(bytes), !Task.isCancelled else { break }
            }
        }
        onLoop { $0.finishStream() }
    }

    private func onLoop(_ body: @escaping @Sendable (HTTPConnection) -> Void) {
        let connection = connection
        HTTPServer.loop.execute { body(connection.value) }
    }

    /// Returns true after the kernel has accepted the bytes, false if the client has disconnected.
    private func write(_ bytes: [UInt8]) async -> Bool {
        let written = HTTPServer.loop.makePromise(of: Void.self)
        onLoop { $0.writeStream(bytes, promise: written) }
        do {
            try await written.futureResult.get()
            return true
        } catch {
            return false
        }
    }
}
