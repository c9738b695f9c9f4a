internal import HTTPMessages
internal import NIOCore
internal import Synchronization

/// One request on its way through the handler, and the way back to its connection.
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

    /// Runs the handler and sends its answer. The handler is cancelled when the caller is or the client goes away.
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

    /// The client closed the connection.
    func clientLeft() {
        let work = progress.withLock { progress in
            progress.hasClientLeft = true
            return progress.work
        }
        // Outside of the lock: what is cancelled may run its cancellation handlers here.
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

    /// True once the bytes are with the kernel; false if the client is gone.
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
