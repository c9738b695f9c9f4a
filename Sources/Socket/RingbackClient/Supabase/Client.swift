package import RingbackAPI
package import RingbackBase

/// What only Supabase projects offer. With another provider each call throws `method_unsupported`.
extension BrokerClient {
    public enum Beginning: Sendable {
        case done(Account)
        /// A flow was begun, see ``Flow/waitingFor``: open its page, or ``verify(_:code:)`` a code. ``wait(for:)``
        /// returns when it has ended.
        case pending(Flow)
    }

    /// Signs in by any method that the project offers; otherwise as ``signIn(_:timeout:switchSubject:replace:)``.
    ///
    /// - Throws: `invalid_credentials`, `email_already_in_use`, `weak_password`, `validation_failed`, `rate_limited`
    ///   and others; ``RingbackError/userMessage`` is the text for the user.
    public func signIn(
        _ account: String, with way: SupabaseSignInFields, timeout: Int? = nil, switchSubject: Bool = false,
        replace: Bool = false
    ) async throws(RingbackError) -> Beginning {
        let more: JSONObject = [
            "timeout": timeout, "switch_subject": switchSubject ? true : nil, "replace": replace ? true : nil,
        ]
        return try await begin(.signIn, account, JSONObject(try way.body().members + more.members))
    }

    /// Redeems the code that the user received. A wrong code leaves the flow pending. Throws `invalid_credentials` or
    /// another error of the project; or the reason why there is no session.
    @discardableResult
    public func verify(_ flow: Flow, code: String) async throws(RingbackError) -> Account {
        try await verify(flow, ["code": code])
    }

    /// The same with the hash that a mail's link carries, if the project's mail template leads to the app.
    @discardableResult
    public func verify(_ flow: Flow, tokenHash: String) async throws(RingbackError) -> Account {
        try await verify(flow, ["token_hash": tokenHash])
    }

    func verify(_ flow: Flow, _ proof: JSONObject) async throws(RingbackError) -> Account {
        try await run { calls throws(RingbackError) in
            let ended = try calls.verify(flow: flow.id, proof).0
            if let failure = ended.failure { throw failure }
            return try Account(reading: try calls.account(flow.account))
        }
    }

    /// Sends the flow's message again, not before ``Flow/resendAfter``. A project may ask for another CAPTCHA proof.
    public func resend(_ flow: Flow, captchaToken: String? = nil) async throws(RingbackError) -> Flow {
        try await run { calls throws(RingbackError) in
            let known = try calls.resend(flow: flow.id, captcha: captchaToken).0
            if let failure = known.failure { throw failure }
            return known
        }
    }

    /// Sends a mail to a user who forgot the password. Once the flow is completed, ``updateUser(_:_:)`` sets another.
    public func resetPassword(
        _ account: String, email: String, captchaToken: String? = nil
    ) async throws(RingbackError) -> Beginning {
        try await begin(.resetPassword, account, ["email": email, "captcha_token": captchaToken])
    }

    public func user(_ account: String) async throws(RingbackError) -> User {
        try await project(.getUser, account, reading: BrokerClient.user)
    }

    /// Changes the user. Another address or number takes effect when its codes have been redeemed: while they are
    /// awaited, ``UserUpdate/confirmation`` is the flow for ``confirm(_:code:)``.
    @discardableResult
    public func updateUser(_ account: String, _ changes: UserChanges) async throws(RingbackError) -> UserUpdate {
        try await project(.updateUser, account, body: try changes.body()) { answer throws(RingbackError) in
            UserUpdate(user: try BrokerClient.user(answer), confirmation: answer["flow"].flatMap(Flow.init(reading:)))
        }
    }

    /// Redeems a code of a change of the user. If codes went to both addresses, the flow is pending after the first
    /// one, and completed after the second. A wrong code throws and leaves the flow pending.
    @discardableResult
    public func confirm(_ flow: Flow, code: String) async throws(RingbackError) -> Flow {
        try await run { calls throws(RingbackError) in
            let known = try calls.verify(flow: flow.id, ["code": code]).0
            if let failure = known.failure { throw failure }
            return known
        }
    }

    /// Sends the code that a change of the password may need, see ``UserChanges/nonce``.
    public func reauthenticate(_ account: String) async throws(RingbackError) {
        try await project(.reauthenticate, account, body: [:]) { _ in }
    }

    public func identities(_ account: String) async throws(RingbackError) -> [Identity] {
        try await project(.listIdentities, account, reading: Identity.list)
    }

    /// Links a provider's account to the user, in the browser.
    public func link(_ account: String, provider: String) async throws(RingbackError) -> Beginning {
        try await link(account, with: .browser(provider))
    }

    /// The same with scopes and parameters, or by an ID token that the app has: `.browser(…)` and `.idToken(…)`. Every
    /// other method throws `validation_failed`.
    public func link(_ account: String, with way: SupabaseSignInFields) async throws(RingbackError) -> Beginning {
        // The endpoint already says that it is a link.
        let members = try way.body().members.filter { $0.name != "method" }
        return try await begin(.linkIdentity, account, JSONObject(members))
    }

    /// Unlinks a provider's account from the user. Returns the remaining identities.
    @discardableResult
    public func unlink(_ account: String, identity: String) async throws(RingbackError) -> [Identity] {
        try await project(.unlinkIdentity, account, [identity], reading: Identity.list)
    }

    public func factors(_ account: String) async throws(RingbackError) -> [Factor] {
        try await project(.listFactors, account) { answer throws(RingbackError) in
            try answer.list("factors", Factor.init(reading:))
        }
    }

    /// Adds a factor: an authenticator app, or a phone. It takes effect once ``verifyFactor(_:_:code:challenge:)`` has
    /// succeeded. For an authenticator see ``enrollWebAuthnFactor(_:name:)``.
    public func enrollFactor(
        _ account: String, phone: String? = nil, name: String? = nil
    ) async throws(RingbackError) -> FactorEnrolment {
        let type = phone == nil ? "totp" : "phone"
        return try await project(
            .enrollFactor, account, body: ["factor_type": type, "phone": phone, "friendly_name": name],
            reading: FactorEnrolment.init(reading:))
    }

    /// Requests a challenge for ``verifyFactor(_:_:code:challenge:)``, which sends a phone its code.
    public func challengeFactor(
        _ account: String, _ factor: String, channel: MessageChannel? = nil
    ) async throws(RingbackError) -> String {
        try await project(.challengeFactor, account, [factor], body: ["channel": channel?.rawValue]) {
            answer throws(RingbackError) in try answer.text("id", of: "challenge")
        }
    }

    /// Verifies a factor: the session then has the second assurance level. `challenge` is that of
    /// ``challengeFactor(_:_:channel:)``; an authenticator app needs none.
    @discardableResult
    public func verifyFactor(
        _ account: String, _ factor: String, code: String, challenge: String? = nil
    ) async throws(RingbackError) -> Account {
        try await project(
            .verifyFactor, account, [factor], body: ["code": code, "challenge_id": challenge],
            reading: Account.init(reading:))
    }

    /// Removes a factor. Returns the account with the level that its session has then.
    @discardableResult
    public func removeFactor(_ account: String, _ factor: String) async throws(RingbackError) -> Account {
        try await project(.removeFactor, account, [factor], reading: Account.init(reading:))
    }

    /// Calls a function of the project's database as the user; only those that the configuration lists (`rpc`).
    /// `arguments` are a JSON object, and the result is JSON text.
    public func call(
        _ account: String, function: String, arguments: String = "{}"
    ) async throws(RingbackError) -> String {
        try await project(.callFunction, account, [function], body: try JSONText.object(arguments)) { answer in
            (answer["result"] ?? .null).text
        }
    }

    /// Calls an Edge Function of the project as the user; only those that the configuration lists (`edge_functions`).
    /// As with ``call(_:function:arguments:)``; an empty response is `null`.
    public func invoke(
        _ account: String, function: String, arguments: String = "{}"
    ) async throws(RingbackError) -> String {
        try await project(.invokeFunction, account, [function], body: try JSONText.object(arguments)) { answer in
            (answer["result"] ?? .null).text
        }
    }

    private func begin(
        _ endpoint: Endpoint, _ account: String, _ body: JSONObject
    ) async throws(RingbackError) -> Beginning {
        try await run { calls throws(RingbackError) in
            switch try calls.begin(endpoint, account, body) {
            case .flow(let flow, _): return .pending(flow)
            case .done(let json): return .done(try Account(reading: json))
            }
        }
    }

    private static func user(_ answer: JSON) throws(RingbackError) -> User {
        guard let user = User(reading: answer["user"]) else { throw .missing("user", in: "response") }
        return user
    }
}

extension BrokerCalls {
    /// The daemon may have to refresh the session before it asks the project: two requests of 20 s at most.
    private static let patience = Duration.seconds(60)

    package func project(
        _ endpoint: Endpoint, _ account: String, _ values: String..., body: JSONObject? = nil,
        onTick: (() -> Void)? = nil
    ) throws(RingbackError) -> JSON { try project(endpoint, account, values, body: body, onTick: onTick) }

    func project(
        _ endpoint: Endpoint, _ account: String, _ values: [String], body: JSONObject?, onTick: (() -> Void)? = nil
    ) throws(RingbackError) -> JSON {
        try call(
            endpoint, [account] + values, body: body.map { .object($0) }, timeout: BrokerCalls.patience, onTick: onTick)
    }

    /// Begins an operation that may have to wait for the user. Returns a flow, or the result if it was done at once.
    package func begin(
        _ endpoint: Endpoint, _ account: String, _ body: JSONObject, onTick: (() -> Void)? = nil
    ) throws(RingbackError) -> Started {
        let answer = try project(endpoint, account, body: body, onTick: onTick)
        if let flow = Flow(reading: answer) { return .flow(flow, answer) }
        return .done(answer)
    }

    /// Redeems a `code`, a `token_hash` or a `credential`. A wrong code leaves the flow pending.
    package func verify(flow id: String, _ proof: JSONObject) throws(RingbackError) -> (Flow, JSON) {
        try flow(after: .verifyFlow, id, proof)
    }

    /// Sends a flow's message again. A project may ask for the proof of a CAPTCHA each time.
    package func resend(flow id: String, captcha: String? = nil) throws(RingbackError) -> (Flow, JSON) {
        try flow(after: .resendFlow, id, ["captcha_token": captcha])
    }

    private func flow(after deed: Endpoint, _ id: String, _ body: JSONObject) throws(RingbackError) -> (Flow, JSON) {
        let answer = try call(deed, [id], body: .object(body), timeout: BrokerCalls.patience)
        guard let flow = Flow(reading: answer) else { throw .missing("id", in: "flow") }
        return (flow, answer)
    }
}
