internal import Dispatch
internal import Glibc
internal import RingbackBase
internal import Synchronization

/// The helper's requests to the user's D-Bus buses. A request may wait long for a service or for the user, so each has
/// a thread of its own, and so has each watch. They store their results here and write a byte to a socket, which wakes
/// the helper's poll loop.
final class BusRequests: Sendable {
    /// The addresses of the buses; nil for those of the environment.
    struct Places: Sendable {
        var session: String?
        var system: String?
    }

    /// Requests to the Secret Service at a time. More would be an error of the daemon; each may show a prompt.
    static let maxConversations = 8
    /// Programs that are being started.
    static let maxPrograms = 8

    struct Results {
        var outcomes: [(request: Int, outcome: HelperProcess.Answer)] = []
        var events: Set<BusEvent> = []
        var notices: [NoticeEvent] = []
    }

    private struct State {
        var results = Results()
        var watches: [BusEvent: BusWatch] = [:]
        var conversations = 0
        var programs = 0
        var notices: NotificationPresenter?
    }

    private let places: Places
    private let state = Mutex(State())
    let wakeup: Wakeup

    init(_ places: Places) throws(Spawn.Failure) {
        self.places = places
        wakeup = try Wakeup()
    }

    /// Returns and removes all results since the last call.
    func take() -> Results {
        // Emptied before the results are taken. A result that arrives in between writes another byte.
        wakeup.empty()
        return state.withLock { state in
            defer { state.results = Results() }
            return state.results
        }
    }

    func endWatches() {
        // Outside the lock: ending a watch may wait for its thread, which may need the lock to store a result.
        let watches = state.withLock { state in
            defer {
                state.watches = [:]
                state.notices = nil
            }
            return (state.watches, state.notices)
        }
        withExtendedLifetime(watches) {}
    }

    func watch(_ event: BusEvent) {
        guard state.withLock({ $0.watches[event] == nil }) else { return }
        let place: BusPlace =
            switch event {
            case .secretServiceChanged: .session(address: places.session)
            case .screenLocked: .system(address: places.system)
            }
        let watch = BusWatch(for: event, place: place) { [weak self] in
            self?.put { $0.results.events.insert(event) }
        }
        state.withLock { $0.watches[event] = watch }
    }

    func converse(_ request: HelperMessage, id: Int) {
        guard mayBegin(\.conversations, BusRequests.maxConversations) else {
            let reason = "\(BusRequests.maxConversations) requests to the Secret Service are running already"
            return put { $0.results.outcomes.append((id, .failure(.secretService(.failed(reason: reason))))) }
        }
        let client = SecretServiceClient(place: .session(address: places.session))
        DispatchQueue(label: "ringback.secret-service").async { [self] in
            let outcome = BusRequests.hold(request, client)
            put { state in
                state.conversations -= 1
                state.results.outcomes.append((id, outcome))
            }
        }
    }

    /// Counts one more of what is running, unless there are as many as there may be.
    private func mayBegin(_ count: WritableKeyPath<State, Int>, _ most: Int) -> Bool {
        state.withLock { state in
            guard state[keyPath: count] < most else { return false }
            state[keyPath: count] += 1
            return true
        }
    }

    func notify(_ request: JSON, id: Int) {
        let presenter = notices()
        if let notice = Notice(members: request) {
            presenter.show(notice, replacing: request["replaces"]?.number) { [self] showing in
                put { $0.results.outcomes.append((id, .success(HelperMessage(showing.members)))) }
            }
        } else {
            // Respond when it is done: the daemon may be about to end and closes the helper then.
            presenter.close(request["notice"]?.number ?? 0) { [self] in
                put { $0.results.outcomes.append((id, .success(HelperMessage()))) }
            }
        }
    }

    private func notices() -> NotificationPresenter {
        state.withLock { state in
            if let presenter = state.notices { return presenter }
            let presenter = NotificationPresenter(place: .session(address: places.session)) { [weak self] event in
                self?.put { $0.results.notices.append(event) }
            }
            state.notices = presenter
            return presenter
        }
    }

    /// Starts a program. The response says whether it runs.
    func start(_ program: Application, environment: [String], id: Int) {
        guard mayBegin(\.programs, BusRequests.maxPrograms) else {
            let reason = "was not started: \(BusRequests.maxPrograms) other programs are being started"
            return put { $0.results.outcomes.append((id, BusRequests.answer(ofFailure: reason))) }
        }
        DispatchQueue(label: "ringback.program").async { [self] in
            let failure = program.start(environment: environment, places: places)
            put { state in
                state.programs -= 1
                state.results.outcomes.append((id, BusRequests.answer(ofFailure: failure)))
            }
        }
    }

    private static func answer(ofFailure reason: String?) -> HelperProcess.Answer {
        .success(HelperMessage(["started": reason == nil, "reason": reason]))
    }

    private static func hold(_ request: HelperMessage, _ client: SecretServiceClient) -> HelperProcess.Answer {
        let id = request.members["key"]?.string
        let mayPrompt = request.members["may_prompt"]?.bool ?? false
        do throws(SecretServiceError) {
            switch (request.members["verb"]?.string, id) {
            case ("status", _): return .success(HelperMessage(["locked": try client.isLocked()]))
            case ("read", let id?):
                return .success(HelperMessage(secret: try client.read(id: id, mayPrompt: mayPrompt)))
            case ("create", let id?):
                guard let secret = request.secret else { throw .failed(reason: "the request has no secret to store") }
                try client.create(id: id, secret: secret, mayPrompt: mayPrompt)
            case ("delete", let id?): try client.delete(id: id, mayPrompt: mayPrompt)
            default: throw .failed(reason: "the request is unknown")
            }
            return .success(HelperMessage())
        } catch {
            return .failure(.secretService(error))
        }
    }

    private func put(_ change: (inout State) -> Void) {
        state.withLock { change(&$0) }
        wakeup.wake()
    }
}
