import RingbackBase
import Synchronization
import Testing

@testable import RingbackClient

@Suite(.timeLimit(.minutes(5))) struct `Broker client` {
    private static let session = #"""
        {"account":"work","subject":"alice","access_token":"secret-token","token_type":"bearer","expires_at":99,
        "scope":"openid","issuer":"https://i","user":{"email":"a@b"},"new":1}
        """#

    @Test func `a session has what the daemon says, and shows its token only where it is asked for`() async throws {
        let daemon = try FakeDaemon { _ in .json(200, Self.session) }
        let broker = daemon.client
        let session = try await broker.session("work", minValid: 300, scope: "a b")
        #expect(session.subject == "alice")
        #expect(session.expiresAt == WallInstant(secondsSince1970: 99))
        #expect(session.user?.email == "a@b")
        #expect(session.authorization == "Bearer secret-token")
        #expect(!"\(session)".contains("secret") && !String(reflecting: session).contains("secret"))
        var dumped = ""
        dump(session, to: &dumped)
        #expect(!dumped.contains("secret"))
        #expect(
            daemon.requests[0].hasPrefix(
                "GET /v1/accounts/work/session?min_valid=300&scope=a%20b&include=user HTTP/1.1\r\n"))
    }

    @Test func `without a session the error says so, and a handler signs in`() async throws {
        let isSignedIn = Mutex(false)
        let daemon = try FakeDaemon { request in
            if request.hasPrefix("GET /v1/accounts/work/session") {
                return isSignedIn.withLock { $0 }
                    ? .json(200, Self.session) : .json(401, #"{"code":"sign_in_required","recovery":"sign_in"}"#)
            }
            if request.hasPrefix("POST /v1/accounts/work/sign-in") {
                return .json(201, #"{"id":"f1","account":"work","status":"pending","authorization_url":"https://i/a"}"#)
            }
            if request.hasPrefix("GET /v1/flows/f1?wait=25") {
                isSignedIn.withLock { $0 = true }
                return .json(200, #"{"id":"f1","account":"work","status":"completed"}"#)
            }
            return .json(200, #"{"name":"work","provider":"oidc","state":"authenticated"}"#)
        }
        let broker = daemon.client
        await #expect(throws: RingbackError.self) { try await broker.session("work") }
        let shown = Mutex<[String?]>([])
        let session = try await broker.session(
            "work", signIn: .handler { flow in shown.withLock { $0.append(flow.authorizationURL) } })
        #expect(session.subject == "alice")
        #expect(shown.withLock { $0 } == ["https://i/a"])
    }

    @Test func `starts no browser with the page's own address, and says why there is no other`() async throws {
        let daemon = try FakeDaemon { request in
            if request.hasPrefix("GET /v1/accounts/work/session") {
                return .json(401, #"{"code":"sign_in_required","recovery":"sign_in"}"#)
            }
            guard request.hasPrefix("POST /v1/accounts/work/sign-in") else {
                return .json(200, #"{"id":"f1","account":"work","status":"cancelled"}"#)
            }
            return .json(
                201,
                #"""
                {"id":"f1","account":"work","status":"pending","authorization_url":"https://i/a",
                "open_url_error":{"code":"port_in_use","detail":"No address.","recovery":"retry"}}
                """#)
        }
        let broker = daemon.client
        let error = await #expect(throws: RingbackError.self) { try await broker.session("work", signIn: .browser) }
        #expect(error?.kind == "port_in_use" && error?.detail == "No address.")
        // Nobody waits for the flow.
        #expect(daemon.requests.last?.hasPrefix("DELETE /v1/flows/f1 ") == true)
    }

    @Test(arguments: [
        (
            #"{"id":"f","account":"a","status":"failed","error":{"code":"access_denied"}}"#,
            RingbackError.Kind.accessDenied
        ),
        (#"{"id":"f","account":"a","status":"cancelled"}"#, .cancelled),
        (#"{"id":"f","account":"a","status":"expired"}"#, .flowExpired),
        (#"{"id":"f","account":"a","status":"failed"}"#, .badResponse),
    ])
    func `a flow that is over says why there is no session`(json: String, expected: RingbackError.Kind) async throws {
        let daemon = try FakeDaemon { _ in .json(200, json) }
        let broker = daemon.client
        let flow = try #require(Flow(reading: try JSON(parsing: json.utf8)))
        let failure = await #expect(throws: RingbackError.self) { try await broker.wait(for: flow) }
        #expect(failure?.kind == expected)
    }

    @Test func `cancelling a wait cancels the interest`() async throws {
        let waits = Gate()
        let cancelled = Gate()
        let daemon = try FakeDaemon { request in
            if request.hasPrefix("DELETE /v1/flows/f1 ") {
                cancelled.open()
                return .json(200, #"{"id":"f1","status":"cancelled"}"#)
            }
            waits.open()
            return .hold("")
        }
        let broker = daemon.client
        let flow = try #require(Flow(reading: ["id": "f1", "account": "work", "status": "pending"]))
        let waiting = Task { try await broker.wait(for: flow) }
        await waits.wait()
        waiting.cancel()
        await #expect(throws: RingbackError.self) { try await waiting.value }
        await cancelled.wait()
    }

    @Test func `accounts are read leniently, but for their names`() async throws {
        let daemon = try FakeDaemon { _ in
            .json(
                200,
                #"{"accounts":[{"name":"a","state":"newer","error":{"code":"timeout","detail":"d"}},{"name":"b"}]}"#)
        }
        let accounts = try await daemon.client.accounts()
        #expect(accounts.map(\.name) == ["a", "b"])
        #expect(accounts[0].state == "newer" && !accounts[0].state.hasSession)
        #expect(accounts[0].error?.kind == .timeout)
    }

    @Test func `flows are those that the daemon keeps, oldest first`() async throws {
        let daemon = try FakeDaemon { _ in
            .json(
                200,
                #"{"flows":[{"id":"a","account":"work","status":"completed"},"#
                    + #"{"id":"b","account":"home","status":"pending","method":"browser"}]}"#)
        }
        let flows = try await daemon.client.flows()
        #expect(flows.map(\.id) == ["a", "b"] && flows.map(\.status) == [.completed, .pending])
        #expect(daemon.requests.first?.hasPrefix("GET /v1/flows HTTP/1.1\r\n") == true)
    }
}
