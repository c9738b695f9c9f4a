internal import RingbackAPI
package import StrictJSON

/// The calls of a sign-in in their order: start or join, wait, stop waiting.
extension BrokerCalls {
    /// How a sign-in begins.
    package enum Started: Sendable {
        /// A flow was started or joined.
        case flow(Flow, JSON)
        /// The sign-in is done already; the account's JSON.
        case done(JSON)
    }

    /// - Parameter onTick: called once the request is sent, then about once a second: the daemon may have to ask the
    ///   provider first.
    package func signIn(
        _ account: String, _ fields: JSONObject, onTick: (() -> Void)? = nil
    ) throws(RingbackError) -> Started {
        let answer = try call(
            .signIn, [account], body: .object(fields), onTick: onTick)
        if let flow = Flow(reading: answer) { return .flow(flow, answer) }
        return .done(answer)
    }

    /// Waits until the flow has ended. Each long poll ends within half a minute, so that a daemon that has vanished is
    /// noticed.
    ///
    /// - Parameter end: the caller's own deadline. A flow that is still pending then is returned as it is.
    package func wait(
        forFlow id: String, until end: ContinuousClock.Instant? = nil, onTick: (() -> Void)? = nil
    ) throws(RingbackError) -> (Flow, JSON) {
        while true {
            var seconds = 25
            // Rounded up: the daemon takes whole seconds, and 0 would not wait at all.
            if let end { seconds = min(seconds, max(1, Int((end - .now).components.seconds) + 1)) }
            let answer = try call(
                .getFlow, [id], query: [("wait", String(seconds))], timeout: .seconds(seconds + 15),
                onTick: onTick)
            guard let flow = Flow(reading: answer) else { throw .missing("id", in: "flow") }
            if flow.status != .pending { return (flow, answer) }
            refusals?.look(at: flow)
            if let end, .now >= end { return (flow, answer) }
            onTick?()
        }
    }

    /// Every sign-in that the daemon keeps.
    package func flows() throws(RingbackError) -> [Flow] {
        try call(.listFlows)["flows"]?.array?.compactMap { Flow(reading: $0) } ?? []
    }

    /// This caller no longer waits for the flow. Sent even after the interruption: it is an interrupted caller's last
    /// call.
    package func cancel(flow id: String) throws(RingbackError) {
        var calls = self
        calls.interruption = nil
        _ = try calls.call(.cancelFlow, [id], timeout: .seconds(5))
    }

    package func account(_ name: String) throws(RingbackError) -> JSON {
        try call(.getAccount, [name])
    }

    /// Waits for the flow's end and returns the account. After an interruption this caller no longer waits for the
    /// flow.
    func finish(_ flow: Flow) throws(RingbackError) -> Account {
        let ended: Flow
        do throws(RingbackError) {
            ended = try wait(forFlow: flow.id).0
        } catch {
            if error.kind == .cancelled { try? cancel(flow: flow.id) }
            throw error
        }
        if let failure = ended.failure { throw failure }
        return try Account(reading: try account(flow.account))
    }
}
