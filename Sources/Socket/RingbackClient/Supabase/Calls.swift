package import RingbackAPI
package import StrictJSON

/// What only Supabase projects offer, as blocking calls.
extension BrokerCalls {
    /// The daemon may have to refresh the session before it asks the project: two requests of 20 s at most.
    private static let patience = Duration.seconds(60)

    /// One call below an account.
    package func project(
        _ endpoint: Endpoint, _ account: String, _ values: String..., body: JSONObject? = nil,
        onTick: (() -> Void)? = nil
    ) throws(RingbackError) -> JSON {
        try call(
            endpoint, [account] + values, body: body.map { .object($0) },
            timeout: BrokerCalls.patience, onTick: onTick)
    }

    /// Begins an operation that may have to wait for the user. Returns a flow, or the result if it was done at once.
    ///
    /// - Parameter onTick: as ``signIn(_:_:onTick:)``.
    package func begin(
        _ endpoint: Endpoint, _ account: String, _ body: JSONObject, onTick: (() -> Void)? = nil
    ) throws(RingbackError) -> Started {
        let answer = try project(endpoint, account, body: body, onTick: onTick)
        if let flow = Flow(reading: answer) { return .flow(flow, answer) }
        return .done(answer)
    }

    /// Redeems what was typed: `code`, or `token_hash`. A wrong value leaves the flow pending.
    package func verify(flow id: String, _ name: String, _ secret: String) throws(RingbackError) -> (Flow, JSON) {
        try flow(after: .verifyFlow, id, JSONObject([.init(name, .string(secret))]))
    }

    /// Sends a flow's message again. A project may ask for the proof of a CAPTCHA each time.
    package func resend(flow id: String, captcha: String? = nil) throws(RingbackError) -> (Flow, JSON) {
        var body = JSONObject()
        body["captcha_token"] = captcha.map { .string($0) }
        return try flow(after: .resendFlow, id, body)
    }

    func flow(after deed: Endpoint, _ id: String, _ body: JSONObject) throws(RingbackError) -> (Flow, JSON) {
        let answer = try call(
            deed, [id], body: .object(body), timeout: BrokerCalls.patience)
        guard let flow = Flow(reading: answer) else { throw .missing("id", in: "flow") }
        return (flow, answer)
    }

    /// Verifies a factor. For a factor whose code is sent in a message, pass the challenge that sent it.
    package func verifyFactor(
        _ account: String, _ id: String, code: String, challenge: String?
    ) throws(RingbackError) -> JSON {
        var body = JSONObject([.init("code", .string(code))])
        body["challenge_id"] = challenge.map { .string($0) }
        return try project(.verifyFactor, account, id, body: body)
    }
}
