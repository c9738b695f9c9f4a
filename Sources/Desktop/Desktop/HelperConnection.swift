internal import Dispatch
internal import Glibc
public import RingbackBase
internal import Synchronization

/// The daemon's side of the helper process. It can request an account's client secret, Ringback's own keys in the
/// user's keyring, desktop notifications, the program of a configured scheme and web pages in the browser, and it can
/// watch some events; nothing else. Responses are read on a dispatch queue that is created with the first request, so
/// no thread of Swift's cooperative pool blocks.
public final class HelperConnection: Sendable {
    private typealias Answer = HelperProcess.Answer
    private typealias Waiter = CheckedContinuation<Answer, Never>

    private struct State {
        /// Nil after the process has ended.
        var process: HelperProcess?
        var lastID = 0
        /// The callers that wait for a response of the current process.
        var waiters: [Int: Waiter] = [:]
        var listeners: [BusEvent: [Int: AsyncStream<BusEvent>.Continuation]] = [:]
        var noticeListeners: [Int: AsyncStream<NoticeEvent>.Continuation] = [:]
    }

    private let end = AsyncStream.makeStream(of: Never.self)
    private let queue = DispatchQueue(label: "ringback.helper")
    private let state: Mutex<State>

    /// Starts the helper: the executable (by default our own) with these arguments, its end of a socket as descriptor
    /// 3, no descriptors above that, and a clean environment. Call it before any thread is created.
    public static func start(
        executable: String = "/proc/self/exe", arguments: [String]
    ) throws(HelperError) -> HelperConnection {
        HelperConnection(process: try HelperProcess.start(executable, arguments))
    }

    init(process: sending HelperProcess) { state = Mutex(State(process: process)) }

    deinit {
        // The helper ends when the socket is closed, and kills its commands.
        let (listeners, noticeListeners) = state.withLock { state in
            state.process?.hangUp()
            return (state.listeners.values.flatMap(\.values), Array(state.noticeListeners.values))
        }
        for listener in listeners { listener.finish() }
        for listener in noticeListeners { listener.finish() }
        end.continuation.finish()
    }

    /// Returns when the helper has ended, after which every request fails with ``HelperError/ended``. For one caller.
    public func waitUntilEnded() async {
        state.withLock { listen(&$0) }
        for await _ in end.stream {}
    }

    /// The helper's process id; nil after it has ended. For status pages and tests.
    public var processID: Int32? { state.withLock { $0.process?.id } }

    /// The output of the account's `client_secret_command` without line ends at its end. The command may take 60 s and
    /// is then killed. `timeout` limits this call. Throws ``HelperError``.
    public func clientSecret(account: String, timeout: Duration = .seconds(65)) async throws(HelperError) -> Secret {
        let answer = try await request(["do": "client_secret", "account": account], timeout: timeout)
        guard let secret = answer.secret else { throw .ended }
        return secret
    }

    func request(
        _ members: JSONObject, secret: Secret? = nil, descriptor: Int32? = nil, timeout: Duration
    ) async throws(HelperError) -> HelperMessage {
        let id = nextID()
        let answer = await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                ask(id, HelperConnection.message(id, members, secret), descriptor, waiter)
                // At most an hour, so that a huge duration does not overflow the clock's integer.
                let bound = Int(min(max(timeout, .zero), .seconds(3_600)) / .milliseconds(1))
                queue.asyncAfter(deadline: .now() + .milliseconds(bound)) { [weak self] in
                    self?.finish([(id, .failure(.timedOut))])
                }
                // Race: the cancellation handler below may have run before the waiter was registered.
                if Task.isCancelled { finish([(id, .failure(.cancelled))]) }
            }
        } onCancel: {
            finish([(id, .failure(.cancelled))])
        }
        return try answer.get()
    }

    private func nextID() -> Int {
        state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
    }

    /// The caller erases the result.
    private static func message(_ id: Int, _ members: JSONObject, _ secret: Secret? = nil) -> [UInt8] {
        var members = members
        members["id"] = .integer(id)
        var message: [UInt8] = []
        HelperMessage(members, secret: secret).append(to: &message)
        return message
    }

    private func ask(_ id: Int, _ content: consuming [UInt8], _ descriptor: Int32?, _ waiter: Waiter) {
        var message = content
        defer { erase(&message) }
        let sending = state.withLock { state in
            listen(&state)
            let sending = state.process?.send(message, descriptor) ?? .broken
            if sending == .done { state.waiters[id] = waiter }
            return sending
        }
        switch sending {
        case .done: return
        case .full: waiter.resume(returning: .failure(.timedOut))
        case .broken:
            discardProcess()
            waiter.resume(returning: .failure(.ended))
        }
    }

    /// The stream of an event from now on. Several events that were not read yet are delivered as one. None comes after
    /// the helper has ended.
    public func events(_ event: BusEvent) -> AsyncStream<BusEvent> {
        let stream = listen(keeping: 1) { $0.listeners[event, default: [:]][$1] = $2 }
        watch(event)
        return stream
    }

    /// The stream of notification events from now on, in order. If it is not read, the oldest of 256 are dropped.
    public func noticeEvents() -> AsyncStream<NoticeEvent> {
        listen(keeping: 256) { $0.noticeListeners[$1] = $2 }
    }

    /// - Parameter set: sets the listener with this number, or removes it.
    private func listen<Element: Sendable>(
        keeping limit: Int, _ set: @escaping @Sendable (inout State, Int, AsyncStream<Element>.Continuation?) -> Void
    ) -> AsyncStream<Element> {
        let (stream, continuation) = AsyncStream<Element>.makeStream(bufferingPolicy: .bufferingNewest(limit))
        let id = nextID()
        continuation.onTermination = { [weak self] _ in self?.state.withLock { set(&$0, id, nil) } }
        state.withLock { set(&$0, id, continuation) }
        return stream
    }

    /// The response has the id 0, for which nobody waits.
    private func watch(_ event: BusEvent) {
        let message = HelperConnection.message(0, ["do": "watch", "event": event.rawValue])
        let isRefused = state.withLock { state in
            listen(&state)
            return state.process.map { $0.send(message) != .done } ?? false
        }
        if isRefused { discardProcess() }
    }

    private func listen(_ state: inout State) {
        guard let process = state.process, process.source == nil else { return }
        let socket = process.socket
        let source = DispatchSource.makeReadSource(fileDescriptor: socket, queue: queue)
        source.setEventHandler { [weak self] in self?.receive() }
        source.setCancelHandler { close(socket) }
        state.process?.source = source
        source.activate()
    }

    private func receive() {
        guard let received = state.withLock({ $0.process?.receive() }) else { return }
        finish(received.answers)
        for event in received.events {
            let listeners = state.withLock { state in state.listeners[event].map { Array($0.values) } ?? [] }
            for listener in listeners { listener.yield(event) }
        }
        let listeners = state.withLock { Array($0.noticeListeners.values) }
        for notice in received.notices { for listener in listeners { listener.yield(notice) } }
        if received.isOver { discardProcess() }
    }

    /// Resumes the waiting callers, each once.
    private func finish(_ answers: [(request: Int, answer: Answer)]) {
        for (request, answer) in answers {
            let waiter = state.withLock { $0.waiters.removeValue(forKey: request) }
            waiter?.resume(returning: answer)
        }
    }

    /// Gives up the process and fails all requests that wait for it.
    private func discardProcess() {
        let discarded = state.withLock { state -> (id: Int32, waiters: [Int: Waiter])? in
            guard let process = state.process else { return nil }
            process.end()
            defer { (state.process, state.waiters) = (nil, [:]) }
            return (process.id, state.waiters)
        }
        guard let (id, waiters) = discarded else { return }
        for waiter in waiters.values { waiter.resume(returning: .failure(.ended)) }
        end.continuation.finish()
        queue.async { HelperProcess.reap(id) }
    }
}
