internal import Dispatch
public import Secrets
internal import StrictJSON
internal import Synchronization

/// The daemon's end of the helper process.
///
/// It can ask for an account's client secret and nothing else. Reading happens on a dispatch queue made with the first
/// request: no thread of the cooperative pool ever waits, and a daemon that needs no command pays nothing for it.
public final class HelperConnection: Sendable {
    private typealias Answer = HelperProcess.Answer
    private typealias Waiter = CheckedContinuation<Answer, Never>

    private struct State {
        /// Nil after it ended, until the next request.
        var process: HelperProcess?
        var lastID = 0
        /// Who waits for the process that is there now.
        var waiters: [Int: Waiter] = [:]
    }

    private let executable: String
    private let arguments: [String]
    private let queue = DispatchQueue(label: "ringback.helper")
    private let state: Mutex<State>

    /// Starts the helper: the executable (by default our own) with the arguments, descriptor 3 its end of a socket, no
    /// descriptor above that, and a clean environment. Call it before any thread: the helper inherits nothing that
    /// came later. Throws ``HelperError/notStarted(reason:)``.
    public static func start(
        executable: String = "/proc/self/exe", arguments: [String]
    ) throws(HelperError) -> HelperConnection {
        let process = try HelperProcess.start(executable, arguments)
        return HelperConnection(executable: executable, arguments: arguments, process: process)
    }

    init(executable: String, arguments: [String], process: sending HelperProcess) {
        self.executable = executable
        self.arguments = arguments
        state = Mutex(State(process: process))
    }

    deinit {
        // The helper ends by itself when it sees the socket close, and takes its commands with it.
        state.withLock { $0.process?.hangUp() }
    }

    /// The helper's process id; nil after it ended. For status pages and tests.
    public var processID: Int32? { state.withLock { $0.process?.id } }

    /// What the account's `client_secret_command` prints, without one newline at the end.
    ///
    /// The command is given 60 s, then killed; `timeout` bounds this call. If the helper has died since the last
    /// request, another is started.
    public func clientSecret(account: String, timeout: Duration = .seconds(65)) async throws(HelperError) -> Secret {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        let answer = await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                ask(id, account, waiter)
                // Nobody waits an hour: a bound keeps absurd ones within what a clock can count.
                let bound = Int(min(max(timeout, .zero), .seconds(3_600)) / .milliseconds(1))
                queue.asyncAfter(deadline: .now() + .milliseconds(bound)) { [weak self] in
                    self?.finish([(id, .failure(.timedOut))])
                }
                // The handler below may have run before there was anybody to wake.
                if Task.isCancelled { finish([(id, .failure(.cancelled))]) }
            }
        } onCancel: {
            finish([(id, .failure(.cancelled))])
        }
        return try answer.get()
    }

    private enum Sending {
        case done
        case refused(by: Int32)
        case impossible(HelperError)
    }

    private func ask(_ id: Int, _ account: String, _ waiter: Waiter) {
        let request: JSON = ["id": .integer(id), "do": "client_secret", "account": .string(account)]
        var message: [UInt8] = []
        appendFrame(request.serialized(), to: &message)
        // A helper that died unnoticed refuses the message. Nothing was asked then, so another may be.
        for _ in 0..<2 {
            let outcome = state.withLock { state -> Sending in
                do throws(HelperError) {
                    if state.process == nil { state.process = try HelperProcess.start(executable, arguments) }
                } catch {
                    return .impossible(error)
                }
                guard let process = state.process else { return .impossible(.ended) }
                if process.source == nil { listen(&state) }
                guard process.send(message) else { return .refused(by: process.id) }
                state.waiters[id] = waiter
                return .done
            }
            switch outcome {
            case .done: return
            case .refused(let process): discardProcess(process)
            case .impossible(let error): return waiter.resume(returning: .failure(error))
            }
        }
        waiter.resume(returning: .failure(.ended))
    }

    private func listen(_ state: inout State) {
        guard let process = state.process else { return }
        let id = process.id
        let socket = process.socket
        let source = DispatchSource.makeReadSource(fileDescriptor: socket, queue: queue)
        source.setEventHandler { [weak self] in self?.receive(from: id) }
        source.setCancelHandler { closeDescriptor(socket) }
        state.process?.source = source
        source.activate()
    }

    private func receive(from id: Int32) {
        let received = state.withLock { state in
            // A process given up in the meantime has nothing to say.
            state.process?.id == id ? state.process?.receive() : nil
        }
        guard let (answers, isOver) = received else { return }
        finish(answers)
        if isOver { discardProcess(id) }
    }

    /// Gives the waiters their answers, each once.
    private func finish(_ answers: [(request: Int, answer: Answer)]) {
        for (request, answer) in answers {
            let waiter = state.withLock { $0.waiters.removeValue(forKey: request) }
            waiter?.resume(returning: answer)
        }
    }

    /// Gives the process up, and tells those who wait for it.
    private func discardProcess(_ id: Int32) {
        let waiters = state.withLock { state -> [Int: Waiter] in
            guard let process = state.process, process.id == id else { return [:] }
            process.end()
            state.process = nil
            defer { state.waiters = [:] }
            return state.waiters
        }
        for waiter in waiters.values { waiter.resume(returning: .failure(.ended)) }
        queue.async { HelperProcess.reap(id) }
    }
}
