internal import RingbackAPI
package import StrictJSON

/// The sign-in's calls in the order a person lives them: start or join, wait, withdraw.
extension BrokerCalls {
    /// How a sign-in begins.
    package enum Started: Sendable {
        /// Something is awaited.
        case flow(Flow, JSON)
        /// It was done at once; the account's JSON.
        case done(JSON)
    }

    /// - Parameter onTick: called once the daemon was asked, then about once a second: the daemon may have to ask the
    ///   provider first.
    package func signIn(
        _ account: String, _ fields: JSONObject, onTick: (() -> Void)? = nil
    ) throws(RingbackError) -> Started {
        let answer = try call(
            .signIn, [account], body: .object(fields), onTick: onTick)
        if let flow = Flow(reading: answer) { return .flow(flow, answer) }
        return .done(answer)
    }

    /// Waits until the flow is over, in long polls that each end within half a minute, so that a daemon that vanished
    /// is noticed.
    ///
    /// - Parameter end: the caller's own bound; a flow that is pending still by then is given as it is.
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
            if let end, .now >= end { return (flow, answer) }
            onTick?()
        }
    }

    /// Every sign-in that the daemon remembers.
    package func flows() throws(RingbackError) -> [Flow] {
        try call(.listFlows)["flows"]?.array?.compactMap { Flow(reading: $0) } ?? []
    }

    /// Withdraws this sign-in's interest, even after the interruption: it is what an interrupted caller does last.
    package func withdraw(flow id: String) throws(RingbackError) {
        var calls = self
        calls.interruption = nil
        _ = try calls.call(.withdrawFlow, [id], timeout: .seconds(5))
    }

    package func account(_ name: String) throws(RingbackError) -> JSON {
        try call(.getAccount, [name])
    }

    /// Waits for the flow's end and gives the account. An interruption withdraws the interest.
    func finish(_ flow: Flow) throws(RingbackError) -> Account {
        let ended: Flow
        do throws(RingbackError) {
            ended = try wait(forFlow: flow.id).0
        } catch {
            if error.kind == .cancelled { try? withdraw(flow: flow.id) }
            throw error
        }
        if let failure = ended.failure { throw failure }
        return try Account(reading: try account(flow.account))
    }
}
