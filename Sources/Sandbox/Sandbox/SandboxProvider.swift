internal import HTTPMessages
internal import LocalHTTP
internal import Synchronization

/// One issuer: its state behind a lock, and the waiting for latency, gates and hangs.
final class SandboxProvider: Sendable {
    let signal = Signal()
    let heldRequests: HeldRequests
    private let state: Mutex<ProviderState>
    let clock: @Sendable () -> Int

    init(origin: String, prefix: String, options: SandboxOptions, clock: @escaping @Sendable () -> Int) {
        state = Mutex(ProviderState(origin: origin, prefix: prefix, options: options))
        heldRequests = HeldRequests(signal: signal)
        self.clock = clock
    }

    func withState<Result, Failure: Error>(
        _ body: (inout ProviderState) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try state.withLock(body)
    }

    /// Responds to a request to a path below the issuer's.
    func respond(to request: ServerRequest, path: String) async -> ServerResponse {
        let request = SandboxRequest(request, path: path)
        if path.hasPrefix("/sandbox/") { return await control(request, path: path) }
        guard let endpoint = Endpoint(path: path) else { return Responses.text("There is nothing here.", status: 404) }
        let now = clock()
        let (number, latency, hold, fault) = withState { state in
            let faults = state.faults.take(for: request, endpoint)
            state.server.issuer.counters.requests[endpoint.rawValue, default: 0] += 1
            let number = state.log.append(request, endpoint, at: now + state.clockOffset)
            return (number, state.server.issuer.settings.latency[endpoint.rawValue], faults.hold, faults.answer)
        }
        signal.send()
        if let latency { try? await Task.sleep(for: .milliseconds(latency)) }
        var response = await answer(request, endpoint, hold: hold, fault: fault)
        let date = withState { state in
            state.log.answered(number, with: response.status)
            return HTTPDate.text(of: clock() + state.clockOffset)
        }
        // The date is the issuer's, also where its clock was set to be wrong.
        response.fields.set("Date", date)
        return response
    }

    private func answer(
        _ request: SandboxRequest, _ endpoint: Endpoint, hold: Fault?, fault: Fault?
    ) async -> ServerResponse {
        let isProcessedFirst = hold?.isProcessed ?? false
        var honest = isProcessedFirst ? process(request, endpoint, fault: fault) : nil
        if let hold {
            let isGate = if case .gate = hold.kind { true } else { false }
            // If the client has closed its connection, its request must not take effect.
            guard await heldRequests.hold(endpoint, isReleasable: isGate), isGate else {
                return hold.answer(insteadOf: nil)
            }
        }
        if !isProcessedFirst { honest = process(request, endpoint, fault: fault) }
        if let fault {
            return fault.supabaseResponse(to: request, endpoint) ?? fault.answer(insteadOf: honest?.response)
        }
        guard let honest else { return Responses.text("There is no answer.", status: 500) }
        if honest.hasRotated { withState { $0.server.issuer.counters.rotationsAnswered += 1 } }
        return honest.response
    }

    /// The correct response; nil if a fault keeps the request from taking effect.
    private func process(
        _ request: SandboxRequest, _ endpoint: Endpoint, fault: Fault?
    ) -> (response: ServerResponse, hasRotated: Bool)? {
        guard fault?.isProcessed ?? true else { return nil }
        return withState { state in
            let before = state.server.issuer.counters.rotations
            let response = state.answer(request, endpoint, at: clock() + state.clockOffset)
            return (response, state.server.issuer.counters.rotations > before)
        }
    }
}
