import RingbackBase
import TestSupport
import Testing

private final class Reader {
    let stage: Stage
    let description: APIDescription
    private(set) var asked: Set<String> = []
    private(set) var statuses: Set<Int> = []

    init(_ stage: Stage) async throws {
        self.stage = stage
        description = APIDescription(document: try await stage.api("GET", "/v1/openapi.json").json)
    }

    /// - Parameters:
    ///   - operation: as in the description, with its parameters in braces.
    ///   - words: what stands in the place of the parameters.
    @discardableResult
    func ask(
        _ operation: String, _ words: String..., query: String = "", body: JSON? = nil,
        fields: [(String, String)] = [], status: Int, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Answer {
        let parts = operation.split(separator: " ").map(String.init)
        var rest = words[...]
        let path = parts[1].split(separator: "/", omittingEmptySubsequences: false).map { segment in
            segment.hasPrefix("{") ? rest.popFirst() ?? "" : String(segment)
        }
        let target = path.joined(separator: "/") + query
        let answer = try await stage.api(
            parts[0], target, body, fields: fields, status: status, sourceLocation: sourceLocation)
        let mistakes = description.mistakes(of: answer, to: operation)
        #expect(mistakes.isEmpty, "\(operation): \(mistakes) in \(answer)", sourceLocation: sourceLocation)
        asked.insert(operation)
        statuses.insert(status)
        return answer
    }
}

@Suite struct `The API's description` {
    private let session = "GET /v1/accounts/{account}/session"
    private let signIn = "POST /v1/accounts/{account}/sign-in"
    private let refresh = "POST /v1/accounts/{account}/refresh"
    private let signOut = "DELETE /v1/accounts/{account}/session"
    private let flow = "GET /v1/flows/{flow}"

    @Test func `is what every route answers`() async throws {
        try await Stage.play { stage in
            let reader = try await Reader(stage)
            #expect(reader.description.document["openapi"]?.string?.hasPrefix("3.1") == true)
            try await askOfStates(reader)
            try await askOfFlows(reader)
            try await askOfSessions(reader)
            try await askOfVault(reader)
            try await askOfRegistrations(reader)
            try await askOfGrants(reader)
            try await askOfMistakes(reader)
            #expect(reader.asked == reader.description.operations)
            #expect(reader.statuses.isSuperset(of: [200, 201, 400, 401, 403, 404, 409, 410, 413, 415, 423, 503]))
        }
    }

    private func askOfStates(_ reader: Reader) async throws {
        for name in ["openapi.json", "status", "peer", "accounts", "files", "flows"] {
            try await reader.ask("GET /v1/\(name)", status: 200)
        }
        try await reader.ask("GET /v1/accounts/{account}", "work", status: 200)
        try await reader.ask("GET /v1/accounts/{account}", "none", status: 404)
        try await reader.ask("POST /v1/reload", status: 200)
        try reader.stage.write(configuration: "[accounts.work]\nissuer = \"{sandbox}\"\nclient_id = 1\n")
        let answer = try await reader.ask("POST /v1/reload", status: 400)
        #expect(answer["errors"]?.array?.first?["line"]?.integer == 3)
        try reader.stage.write(configuration: Stage.twoAccounts)

        let events = try reader.stage.connect()
        await events.send(Stage.request("GET", "/v1/events"))
        let head = AnswerHead(try await events.read(through: "\r\n\r\n"))
        let stream = Answer(status: head.status, fields: head.fields, body: [])
        #expect(head.status == 200 && reader.description.mistakes(of: stream, to: "GET /v1/events") == [])
        try await reader.ask("GET /v1/events", query: "?account=none", status: 404)
    }

    private func askOfFlows(_ reader: Reader) async throws {
        let id = try await reader.ask(signIn, "work", status: 201)["id"]?.string ?? ""
        try await reader.ask(signIn, "work", body: ["method": "browser"], status: 200)
        try await reader.ask(signIn, "work", body: ["scopes": "openid"], status: 409)
        try await reader.ask(signIn, "work", body: ["method": "password"], status: 400)
        try await reader.ask(signIn, "work", body: ["timeout": 0], status: 400)
        try await reader.ask(signIn, "none", status: 404)
        try await reader.ask(flow, id, status: 200)
        try await reader.ask(flow, id, query: "?wait=soon", status: 400)
        try await reader.ask(flow, "none", status: 404)
        try await reader.ask("GET /v1/flows", status: 200)
        try await reader.ask("GET /v1/accounts", status: 200)
        let cancel = "DELETE /v1/flows/{flow}"
        try await reader.ask(cancel, "none", status: 404)
        try await reader.ask(cancel, id, query: "?all=maybe", status: 400)
        try await reader.ask(cancel, id, query: "?all=true", status: 200)
        try await reader.ask(flow, id, status: 200)

        let callbacks = "POST /v1/callbacks"
        try await reader.ask(callbacks, body: ["url": "nonsense"], status: 400)
        try await reader.ask(callbacks, body: [:], status: 400)
        let denied = try await reader.stage.begin()
        let no = try await Browser.deny(at: denied.authorizationURL)
        try await reader.ask(callbacks, body: ["url": .string(no.text)], status: 200)
        try await reader.ask(callbacks, body: ["url": .string(no.text + "&x=y")], status: 410)
        try await reader.ask(flow, denied.id, status: 200)
        try await reader.ask("GET /v1/accounts/{account}", "work", status: 200)
        let granted = try await reader.stage.begin()
        let yes = try await Browser.signIn(at: granted.authorizationURL)
        try await reader.ask(callbacks, body: ["url": .string(yes.text)], status: 200)
        try await reader.ask(flow, granted.id, status: 200)
    }

    private func askOfSessions(_ reader: Reader) async throws {
        try await reader.ask(session, "work", status: 200)
        try await reader.ask(session, "work", query: "?include=user,id_token&min_valid=60&timeout=5", status: 200)
        try await reader.ask(session, "work", query: "?kind=id_token", status: 200)
        try await reader.ask(session, "work", query: "?subject=bob", status: 409)
        try await reader.ask(session, "work", query: "?min_valid=-1", status: 400)
        try await reader.ask(session, "work", query: "?kind=cookie", status: 400)
        try await reader.ask(session, "home", status: 401)
        try await reader.ask(session, "none", status: 404)
        let byIssuer = "GET /v1/session"
        try await reader.ask(byIssuer, query: "?issuer=\(reader.stage.sandbox.origin)", status: 200)
        try await reader.ask(byIssuer, query: "?issuer=https://none.example", status: 404)
        try await reader.ask(byIssuer, status: 400)
        try await reader.ask("GET /v1/accounts/{account}", "work", status: 200)
        let server = "GET /v1/accounts/{account}/mcp-server"
        try await reader.ask(server, "work", status: 400)
        try await reader.ask(server, "none", status: 404)
        try await askOfLookups(reader)
        try await reader.ask(refresh, "work", body: ["force": true], status: 200)
        try await reader.ask(refresh, "work", body: ["rejected_sha256": "x"], status: 400)
        try await reader.ask(refresh, "home", status: 401)
        try await reader.ask(refresh, "none", status: 404)
        try await reader.stage.sandbox.control(["faults": [["endpoint": "token", "kind": "status", "status": 503]]])
        try await reader.ask(refresh, "work", body: ["force": true], status: 503)
        try await reader.ask(signOut, "work", query: "?scope=global", status: 400)
        try await reader.ask(signOut, "work", status: 200)
        try await reader.ask(signOut, "work", status: 200)
        try await reader.ask(signOut, "none", status: 404)
    }

    private func askOfLookups(_ reader: Reader) async throws {
        let lookup = "POST /v1/lookup"
        try await reader.ask(lookup, body: ["url": "https://git.example.org/x"], status: 404)
        let origins = ["work", "home"].map {
            "[[origin]]\nurl = \"https://\($0).example.org/*\"\naccount = \"\($0)\"\n"
        }
        try reader.stage.write(configuration: Stage.twoAccounts + origins.joined())
        try await reader.ask("POST /v1/reload", status: 200)
        try await reader.ask(lookup, body: ["url": "https://work.example.org/x", "username": "ada"], status: 200)
        let digest = JSON.string(String(repeating: "0", count: 64))
        try await reader.ask(
            lookup, body: ["url": "https://work.example.org/x", "rejected_sha256": digest], status: 200)
        try await reader.ask(lookup, body: ["url": "https://home.example.org/x"], status: 401)
        try await reader.ask(lookup, body: ["url": "x"], status: 400)
    }

    private func askOfVault(_ reader: Reader) async throws {
        for query in ["", "?since=0", "?account=work&limit=5"] {
            try await reader.ask("GET /v1/audit", query: query, status: 200)
        }
        try await reader.ask("GET /v1/audit", query: "?since=yesterday", status: 400)
        try await reader.ask("GET /v1/metrics", status: 200)
        let (lock, unlock, rekey) = ("POST /v1/vault/lock", "POST /v1/vault/unlock", "POST /v1/vault/rekey")
        // This vault is of one host.
        try await reader.ask("POST /v1/vault/join", body: [:], status: 409)
        try await reader.ask("GET /v1/vault/hosts", status: 409)
        try await reader.ask("POST /v1/vault/hosts", body: ["lasting": 600], status: 409)
        try await reader.ask("DELETE /v1/vault/hosts/{host}", "desktop", status: 409)
        try await reader.ask("POST /v1/vault/share", body: ["code": "x"], status: 409)
        try await reader.ask(rekey, body: ["key_source": "pocket"], status: 400)
        try await reader.ask(rekey, body: ["key_source": "key-file"], status: 200)
        try await reader.ask(lock, status: 200)
        try await reader.ask("GET /v1/status", status: 200)
        try await reader.ask("GET /v1/accounts/{account}", "work", status: 200)
        try await reader.ask(session, "work", status: 423)
        try await reader.ask(refresh, "work", status: 423)
        try await reader.ask(signIn, "work", status: 423)
        try await reader.ask(signOut, "work", status: 423)
        try await reader.ask("GET /v1/session", query: "?issuer=\(reader.stage.sandbox.origin)", status: 423)
        try await reader.ask(rekey, body: ["key_source": "key-file"], status: 423)
        try await reader.ask(unlock, body: [:], status: 200)
        try await reader.ask(session, "work", status: 401)
    }

    private func askOfGrants(_ reader: Reader) async throws {
        let (create, one, revoke) = (
            "POST /v1/exposed-sockets", "GET /v1/exposed-sockets/{id}", "DELETE /v1/exposed-sockets/{id}"
        )
        let wish: JSON = ["name": "ci", "accounts": ["work"], "scope": "openid", "ttl": 60, "allow_uids": [4_711]]
        let id = try await reader.ask(create, body: wish, status: 201)["id"]?.string ?? ""
        try await reader.ask(create, body: wish, status: 409)
        try await reader.ask(create, body: ["name": "ci", "socket": "/tmp/x"], status: 400)
        try await reader.ask(create, body: ["name": "other", "account": "none"], status: 404)
        try await reader.ask("GET /v1/exposed-sockets", status: 200)
        for word in [id, "ci"] { try await reader.ask(one, word, status: 200) }
        try await reader.ask(revoke, id, status: 200)
        try await reader.ask(revoke, id, status: 404)
        try await reader.ask(one, "ci", status: 404)
    }

    private func askOfRegistrations(_ reader: Reader) async throws {
        let (register, delete) = ("POST /v1/registrations", "DELETE /v1/registrations/{account}")
        let issuer = JSON.string(reader.stage.sandbox.origin)
        try await reader.ask(register, body: ["account": "Play", "issuer": issuer], status: 400)
        try await reader.ask(register, body: ["account": "work", "issuer": issuer], status: 409)
        let wish: JSON = ["account": "play", "issuer": issuer, "scopes": "openid"]
        let registered = try await reader.ask(register, body: wish, status: 201)
        let query = "?issuer=\(reader.stage.sandbox.origin)&client_id=\(registered["client_id"]?.string ?? "")"
        try await reader.ask(delete, "play", status: 404)
        try await reader.ask(delete, "play", query: query, status: 200)
        try await reader.ask(delete, "play", query: query, status: 404)
        try await reader.stage.sandbox.control(["registration": "token"])
        try await reader.ask(register, body: wish, status: 422)
        try await reader.stage.signIn("home")
        let page = try await reader.ask(signOut, "home", query: "?end_session=true", status: 200)
        #expect(page["end_session_url"]?.string?.contains("id_token_hint=") == true)
        try await reader.ask(signOut, "home", query: "?end_session=maybe", status: 400)
    }

    /// What any route may be answered with.
    private func askOfMistakes(_ reader: Reader) async throws {
        let routes = reader.description.operations.sorted()
        for route in routes {
            let words = route.contains("{flow}") ? "x" : "work"
            try await reader.ask(route, words, "x", fields: [("Origin", "null")], status: 403)
            try await reader.ask(route, words, "x", query: "?x=1&x=2", status: 400)
            let text = [("Content-Type", "text/plain")]
            try await reader.ask(route, words, "x", body: [:], fields: text, status: 415)
            let largest = JSON.string(String(repeating: "a", count: 65_536))
            try await reader.ask(route, words, "x", body: largest, status: 413)
        }
    }
}
