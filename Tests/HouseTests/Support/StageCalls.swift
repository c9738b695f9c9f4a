import RingbackBase
import TestSupport
import Testing

extension Stage {
    /// Plays a stage on which alice is signed in to the account `work`.
    static func playSignedIn(_ configuration: String = twoAccounts, _ test: (Stage) async throws -> Void) async throws {
        try await play(configuration) { stage in
            try await stage.signIn()
            try await test(stage)
        }
    }

    func connect() throws -> Connection { try Connection(to: .unix(socket)) }

    /// A request to the socket API over a connection of its own. The status of the answer and the code of its problem are
    /// checked, if they are named.
    @discardableResult
    func api(
        _ method: String, _ path: String, _ body: JSON? = nil, fields: [(String, String)] = [],
        within bound: Duration = Bound.usual, status: Int? = nil, code: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Answer {
        let answer = try await raw(Stage.request(method, path, body?.text, fields: fields), within: bound)
        let what = "\(method) \(path): \(answer)"
        if let status { #expect(answer.status == status, "\(what)", sourceLocation: sourceLocation) }
        if let code { #expect(answer.code == code, "\(what)", sourceLocation: sourceLocation) }
        return answer
    }

    func raw(_ text: String, within bound: Duration = Bound.usual) async throws -> Answer {
        let connection = try connect()
        await connection.send(text)
        return try await connection.answer(within: bound)
    }

    /// A request's text. A body is JSON unless the fields say otherwise.
    static func request(
        _ method: String, _ path: String, _ body: String? = nil, fields: [(String, String)] = []
    ) -> String {
        var head = "\(method) \(path) HTTP/1.1\r\nHost: ringback\r\n"
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        if let body {
            if !fields.contains(where: { $0.0 == "Content-Type" }) { head += "Content-Type: application/json\r\n" }
            head += "Content-Length: \(body.utf8.count)\r\n"
        }
        return head + "\r\n" + (body ?? "")
    }

    /// Bytes to a port of 127.0.0.1; the first answer, or what came before the connection ended.
    func tcp(_ port: Int, _ text: String, within bound: Duration = Bound.usual) async throws -> Answer {
        let connection = try Connection(to: .ipv4(port))
        await connection.send(text)
        return try await connection.answer(within: bound)
    }

    struct PendingFlow: Sendable {
        let id: String
        let authorizationURL: String
        let redirectURI: String
        /// For a program to open, once.
        let openURL: String
    }

    func begin(_ account: String = "work", _ body: JSON = [:]) async throws -> PendingFlow {
        let answer = try await api("POST", "/v1/accounts/\(account)/sign-in", body)
        guard [200, 201].contains(answer.status), let id = answer["id"]?.string,
            let authorizationURL = answer["authorization_url"]?.string,
            let redirectURI = answer["redirect_uri"]?.string,
            let openURL = answer["open_url"]?.string
        else { throw Late(what: "a flow, not \(answer)") }
        return PendingFlow(id: id, authorizationURL: authorizationURL, redirectURI: redirectURI, openURL: openURL)
    }

    @discardableResult
    func signIn(_ account: String = "work", as user: String = "alice") async throws -> PendingFlow {
        let flow = try await begin(account)
        let (answer, _) = try await Browser.deliver(Browser.signIn(at: flow.authorizationURL, as: user))
        guard answer.status == 303, answer.location == "/done" else { throw Late(what: "a sign-in, not \(answer)") }
        return flow
    }

    /// A sign-in whose access token has expired already; the next ones live as usual.
    func signInExpired(_ account: String = "work", issuer: String = "", as user: String = "alice") async throws {
        // So short a lifetime causes no refresh ahead of the expiry.
        try await sandbox.control(["access_token_lifetime": 1], issuer: issuer)
        try await signIn(account, as: user)
        try await sandbox.control(["access_token_lifetime": 3600], issuer: issuer)
        try await eventually("the token to expire") { try await self.account(account)["stale"] == true }
    }

    /// The flow once it has ended, or as it is after the bound.
    func ended(_ flow: PendingFlow, waiting seconds: Int = 20) async throws -> JSON {
        try await api("GET", "/v1/flows/\(flow.id)?wait=\(seconds)", within: Bound.seconds(seconds + 10)).json
    }

    func account(_ name: String = "work") async throws -> JSON { try await api("GET", "/v1/accounts/\(name)").json }

    func token(_ account: String = "work") async throws -> String? {
        try await api("GET", "/v1/accounts/\(account)/session")["access_token"]?.string
    }

    /// The account is as if nothing had been tried: no session, and an error of this code shows, or none.
    func expectNothingHeld(
        _ name: String = "work", error code: String?, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        // The session first: it waits until a daemon that has just started has loaded the account.
        let session = try await api("GET", "/v1/accounts/\(name)/session")
        #expect(session.status == 401, sourceLocation: sourceLocation)
        #expect(session.code == "sign_in_required", sourceLocation: sourceLocation)
        let account = try await account(name)
        #expect(account["state"]?.string == "unauthenticated", sourceLocation: sourceLocation)
        #expect(account["subject"] == nil && account["user"] == nil, sourceLocation: sourceLocation)
        #expect(account["error"]?["code"]?.string == code, sourceLocation: sourceLocation)
    }
}

extension Stage {
    /// Asks again and again, with the daemon's own answers as the only clock, until the condition holds.
    func eventually(
        _ what: String, within bound: Duration = Bound.usual, _ condition: () async throws -> Bool
    ) async throws {
        let end = ContinuousClock.now + bound
        while try await !condition() {
            guard ContinuousClock.now < end else { throw Late(what: what) }
            await Task.yield()
        }
    }
}
