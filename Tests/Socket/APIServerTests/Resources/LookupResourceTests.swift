import Cryptography
import LocalHTTP
import Records
import RingbackBase
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `Lookups of what a tool sends to a server` {
    private func house(_ origins: [Origin]? = nil) async throws -> APIHouse {
        let house = try await APIHouse.signedIn()
        house.origins.configure(try origins ?? [origin("https://git.example.org/*")])
        return house
    }

    private func origin(
        _ url: String, user: String? = nil, kind: TokenKind = .accessToken, key: TokenKey = .own,
        username: String? = nil, headers: [String]? = nil, allowed: ConnectionSettings = ConnectionSettings()
    ) throws -> Origin {
        Origin(
            OriginRule(try OriginPattern(parsing: url), username: user), account: try #require(AccountName("work")),
            kind: kind, key: key, username: username,
            headers: try headers.map { try $0.map { try OriginHeader(parsing: $0) } } ?? [.usual],
            allowed: allowed)
    }

    @discardableResult
    private func look(
        _ house: APIHouse, _ url: String = "https://git.example.org/team/a", _ more: [(String, JSON)] = [],
        tool: String = "git"
    ) async -> APIHouse.Answer {
        var body = JSONObject([.init("url", .string(url))])
        for (name, value) in more { body[name] = value }
        return await house.ask(
            "POST", "/v1/lookup", JSON.object(body).text, fields: [("Ringback-Application", tool)])
    }

    private func reject(_ house: APIHouse, _ token: String, user: String? = nil) async -> APIHouse.Answer {
        var more: [(String, JSON)] = [("rejected_sha256", JSON.string(Digest.hex(Digest.sha256(token))))]
        if let user { more.append(("username", JSON.string(user))) }
        return await look(house, more: more)
    }

    private func look(_ house: APIHouse, more: [(String, JSON)]) async -> APIHouse.Answer {
        await look(house, "https://git.example.org/team/a", more)
    }

    @Test func `give header lines, the token, and when it expires`() async throws {
        let answer = await look(try await house())
        #expect(answer.status == 200)
        #expect(
            answer.json == [
                "account": "work", "headers": ["Authorization: Bearer access-1"], "secret": "access-1",
                "expires_at": 1_800_003_600,
            ])
        #expect(answer.response.fields["Cache-Control"] == "no-store")
    }

    @Test func `without a token say whose it would be, and need no consent`() async throws {
        let house = try await house()
        house.consents.configure([try #require(AccountName("work")): ConsentDesk.Rule(.deny)])
        let answer = await look(house, more: [("without_token", true)])
        #expect(answer.status == 200 && answer.json == ["account": "work", "headers": []], "\(answer.text)")
        #expect(await look(house).code == "policy_denied")
        #expect(await look(house, "https://other.example/", [("without_token", true)]).code == "not_found")
        #expect(!(await house.ask("GET", "/v1/audit").text.contains("issued_token")))
        await house.ask("DELETE", "/v1/accounts/work/session")
        #expect(await look(house, more: [("without_token", true)]).code == "sign_in_required")
    }

    @Test func `use the origin's own fields, user name and token`() async throws {
        let house = try await house([
            try origin(
                "https://a.example/*", username: "oauth2",
                headers: ["X-Token: {token}", "X-User: {username}"]),
            try origin("https://b.example/*", kind: .idToken),
        ])
        let first = await look(house, "https://a.example/x", [("username", "ada")])
        #expect(first["headers"] == ["X-Token: access-1", "X-User: oauth2"] && first["username"] == "oauth2")
        let second = await look(house, "https://b.example/x", [("username", "ada")])
        #expect(second["secret"]?.string?.hasPrefix("ey") == true && second["username"] == "ada")
    }

    @Test func `get a downscoped token where the origin names a scope`() async throws {
        let house = try await house([try origin("https://git.example.org/*", key: TokenKey(scopes: ["email"]))])
        house.provider.answerNext(
            .init(body: #"{"access_token":"downscoped","token_type":"Bearer","expires_in":3600,"scope":"email"}"#))
        #expect(await look(house)["secret"] == "downscoped")
        #expect(house.provider.lastScope == "email")
    }

    @Test func `refuse a token with more scope than the origin names`() async throws {
        let house = try await house([try origin("https://git.example.org/*", key: TokenKey(scopes: ["email"]))])
        house.provider.answerNext(
            .init(body: #"{"access_token":"wide","token_type":"Bearer","expires_in":3600,"scope":"email openid"}"#))
        let answer = await look(house)
        #expect(answer.code == "invalid_provider_response" && answer["detail"]?.string?.contains("(openid)") == true)
    }

    @Test func `find nothing where no origin fits, and say which mistakes a request has`() async throws {
        let house = try await house([try origin("https://git.example.org/team/*", user: "ada")])
        for url in ["https://other.example/", "http://git.example.org/team/a", "https://id.example/"] {
            #expect(await look(house, url).code == "not_found", "\(url)")
        }
        #expect(await look(house).code == "not_found")
        #expect(await look(house, more: [("username", "ada")]).status == 200)
        #expect(await look(house, "https://git.example.org/other", [("username", "ada")]).code == "not_found")
        for body in [
            "{}", #"{"url":7}"#, #"{"url":""}"#, #"{"url":"git.example.org"}"#, #"{"url":"https://a@b/"}"#,
            #"{"url":"https://git.example.org\\x"}"#, #"{"url":"https://a.b","username":"a\nb"}"#,
            #"{"url":"https://a.b","rejected_sha256":"abc"}"#, #"{"url":"https://a.b","interactive":1}"#,
            #"{"url":"https://a.b","other":1}"#,
        ] {
            #expect(await house.ask("POST", "/v1/lookup", body).code == "validation_failed", "\(body)")
        }
    }

    @Test func `a tool that does not say its scheme gets a token only of an origin that allows that`() async throws {
        var allowed = ConnectionSettings()
        allowed.withoutScheme = true
        let house = try await house([
            try origin("https://git.example.org/*"), try origin("https://npm.example.org/*", allowed: allowed),
            try origin("https://npm.example.org/team/*"),
        ])
        for (url, says, status) in [
            ("https://git.example.org/", true, 403), ("https://git.example.org/", false, 200),
            ("https://npm.example.org/", true, 200), ("https://npm.example.org/", false, 200),
            // The most specific origin decides.
            ("https://npm.example.org/team/a", true, 403), ("https://other.example.org/", true, 404),
        ] {
            let answer = await look(house, url, [("without_scheme", .bool(says))])
            #expect(answer.status == status && (answer["secret"] != nil) == (status == 200), "\(url) \(says)")
            guard status == 403 else { continue }
            let detail = answer["detail"]?.string ?? ""
            #expect(answer.code == "policy_denied" && detail.contains("without_scheme = true"), "\(detail)")
        }
        #expect(await look(house, "https://git.example.org/", [("without_scheme", "yes")]).code == "validation_failed")
    }

    @Test func `a tool with other TLS settings gets a token only of an origin that allows each`() async throws {
        let digest = String(repeating: "ab", count: 32)
        let settings: [(String, JSON, String)] = [
            ("ca_sha256", .string(digest.uppercased()), "ca_sha256 = \"\(digest)\""),
            ("tls_server_name", "K8s.internal", "tls_server_name = \"k8s.internal\""),
            ("insecure_skip_tls_verify", true, "insecure_skip_tls_verify = true"),
            ("proxy_url", "http://ada:pw@proxy:3128/", "proxy_url = \"http://proxy:3128\""),
        ]
        var allowed = ConnectionSettings()
        allowed.authorities = [digest]
        allowed.serverNames = ["k8s.internal"]
        allowed.skipsVerification = true
        allowed.proxies = ["http://proxy:3128"]
        let house = try await house([
            try origin("https://strict.example/*"), try origin("https://open.example/*", allowed: allowed),
        ])
        for (name, value, line) in settings {
            let refused = await look(house, "https://strict.example/", [(name, value)])
            #expect(refused.code == "policy_denied" && refused["secret"] == nil, "\(name)")
            let detail = refused["detail"]?.string ?? ""
            #expect(detail.contains(line) && !detail.contains("pw"), "\(detail)")
            #expect(await look(house, "https://open.example/", [(name, value)]).status == 200, "\(name)")
        }
        let all = settings.map { ($0.0, $0.1) }
        #expect(await look(house, "https://open.example/", all).status == 200)
        for (name, value): (String, JSON) in [
            ("ca_sha256", .string(String(repeating: "cd", count: 32))), ("tls_server_name", "other"),
            ("proxy_url", "http://proxy:3129"), ("proxy_url", "https://proxy:3128"),
        ] {
            #expect(await look(house, "https://open.example/", [(name, value)]).code == "policy_denied", "\(name)")
        }
        for (name, value): (String, JSON) in [
            ("ca_sha256", "ab"), ("tls_server_name", "a\"b"), ("tls_server_name", ""), ("proxy_url", "proxy"),
            ("insecure_skip_tls_verify", "no"),
        ] {
            let wrong = await look(house, "https://open.example/", [(name, value)])
            #expect(wrong.code == "validation_failed", "\(name) \(value)")
        }
    }

    @Test func `of a signed-out account fail`() async throws {
        let house = try await APIHouse()
        house.origins.configure([try origin("https://git.example.org/*")])
        #expect(await look(house).code == "sign_in_required")
    }

    @Test func `give no token with characters that would add something to a request`() async throws {
        let house = try await house()
        house.provider.answerNext(
            .init(body: #"{"access_token":"a b","token_type":"Bearer","expires_in":3600,"scope":"openid email"}"#))
        // The response is invalid, so the session keeps the token that it has.
        let refresh = await house.ask("POST", "/v1/accounts/work/refresh", #"{"force":true}"#)
        #expect(refresh.code == "invalid_provider_response" && !refresh.text.contains("a b"))
        let answer = await look(house)
        #expect(answer["secret"] == "access-1" && !answer.text.contains("a b"))
    }

    @Test func `replace a token that the server refused, and warn after the second one in a row`() async throws {
        let house = try await house()
        #expect(await look(house)["secret"] == "access-1")
        let noted = await reject(house, "access-1")
        #expect(noted.json == ["account": "work", "headers": []])
        #expect(house.provider.tokenRequests == 1)
        #expect(await look(house)["secret"] == "access-2")
        #expect(await look(house)["secret"] == "access-2")
        // Somebody's old process.
        _ = await reject(house, "access-1")
        #expect(await look(house)["secret"] == "access-2")

        let warning = try #require(await reject(house, "access-2")["warning"]?.string)
        #expect(warning.contains("git.example.org") && warning.contains("scope") && warning.contains("five minutes"))
        let again = await look(house)
        #expect(again["secret"] == "access-2" && again["warning"]?.string == warning)
        #expect(house.provider.tokenRequests == 2)
        house.clock.advance(by: 301)
        let renewed = await look(house)
        #expect(renewed["secret"] == "access-3" && renewed["warning"] == nil)
    }

    @Test func `know a refused token whatever user name the tool says`() async throws {
        let house = try await house([
            try origin("https://git.example.org/*", user: "ada", username: "oauth2")
        ])
        #expect(await look(house, more: [("username", "ada")])["secret"] == "access-1")
        #expect(await reject(house, "access-1", user: "oauth2").status == 200)
        #expect(await look(house, more: [("username", "ada")])["secret"] == "access-2")
        #expect(await reject(house, "another secret", user: "oauth2").code == "not_found")
    }

    @Test func `replace a downscoped token and an ID token too`() async throws {
        let downscoped = #"{"access_token":"downscoped-#","token_type":"Bearer","expires_in":3600,"scope":"email"}"#
        let scoped = try await house([try origin("https://git.example.org/*", key: TokenKey(scopes: ["email"]))])
        for number in ["1", "2"] {
            scoped.provider.answerNext(.init(body: downscoped.replacing("#", with: number)))
            #expect(await look(scoped)["secret"]?.string == "downscoped-\(number)")
            _ = await reject(scoped, "downscoped-\(number)")
        }
        #expect(await scoped.ask("GET", "/v1/accounts/work/session")["access_token"] == "access-1")

        let proving = try await house([try origin("https://git.example.org/*", kind: .idToken)])
        let first = try #require(await look(proving)["secret"]?.string)
        _ = await reject(proving, first)
        let second = try #require(await look(proving)["secret"]?.string)
        #expect(first != second && proving.provider.tokenRequests == 2)
    }

    @Test func `at once cause one refresh of a refused token`() async throws {
        let house = try await house()
        await look(house)
        _ = await reject(house, "access-1")
        let secrets = await withTaskGroup(of: String?.self) { group in
            for _ in 0..<50 { group.addTask { await look(house)["secret"]?.string } }
            return await group.reduce(into: Set<String?>()) { $0.insert($1) }
        }
        #expect(secrets == ["access-2"])
        #expect(house.provider.tokenRequests == 2)
    }

    @Test func `of a held token are answered at once, and no others`() async throws {
        let house = try await house([
            try origin("https://git.example.org/*"), try origin("https://proof.example/*", kind: .idToken),
            try origin("https://narrow.example/*", key: TokenKey(scopes: ["email"])),
        ])
        func isImmediate(_ url: String, _ more: [(String, JSON)] = [], fields: [(String, String)] = []) -> Bool {
            var body = JSONObject([.init("url", .string(url))])
            for (name, value) in more { body[name] = value }
            let request = ServerRequest(
                method: "POST", target: "/v1/lookup",
                fields: HTTPFields([("Content-Type", "application/json")] + fields),
                body: JSON.object(body).serialized(), peer: .local(uid: 1_000, pid: 4_711))
            return house.api.immediate(request) != nil
        }
        let git = "https://git.example.org/team/a"
        #expect(isImmediate(git) && isImmediate(git, [("interactive", true)]))
        #expect(isImmediate(git, [("username", "ada")]))
        for url in ["https://proof.example/", "https://narrow.example/", "https://other.example/", "git"] {
            #expect(!isImmediate(url), "\(url)")
        }
        #expect(!isImmediate(git, [("other", 1)]) && !isImmediate(git, fields: [("Origin", "https://evil.example")]))
        let rejection = ("rejected_sha256", JSON.string(Digest.hex(Digest.sha256("access-1"))))
        #expect(!isImmediate(git, [rejection]))
        _ = await reject(house, "access-1")
        #expect(!isImmediate(git))
        #expect(await look(house)["secret"] == "access-2")
        #expect(isImmediate(git))
        house.clock.advance(by: 3_600)
        #expect(!isImmediate(git))
    }

    @Test func `are the same whether they are answered at once or not`() async throws {
        let house = try await house()
        let body = #"{"url":"https://git.example.org/team/a","username":"ada"}"#
        let first = await house.ask("POST", "/v1/lookup", body, immediate: false)
        let second = await house.ask("POST", "/v1/lookup", body)
        #expect(first.status == 200 && first.text == second.text)
        let lists = [first, second].map { $0.response.fields.lines.map { "\($0.name): \($0.value)" } }
        #expect(lists[0] == lists[1])
    }

    @Test func `are in the audit log with origin and tool`() async throws {
        let house = try await house()
        await look(house, tool: "git\u{1B}[31m")
        _ = await reject(house, "access-1")
        await house.records.audit.flush()
        let text = house.folder.text
        #expect(text.contains(#""origin":"https://git.example.org/*","tool":"git?[31m""#), "\(text)")
        #expect(text.contains(#""event":"token_rejected","account":"work""#), "\(text)")
        #expect(!text.contains("access-1"))
    }

    @Test func `of a restricted socket serve the origins of its accounts alone`() async throws {
        let exposed = try await ExposedHouse()
        let hidden = try #require(AccountName("hidden"))
        exposed.house.origins.configure([
            try origin("https://git.example.org/*"),
            Origin(OriginRule(try OriginPattern(parsing: "https://hidden.example/*")), account: hidden),
            try origin("https://proof.example/*", kind: .idToken),
            try origin("https://audience.example/*", key: TokenKey(audience: "x")),
        ])
        func look(_ url: String) async -> APIHouse.Answer {
            await exposed.ask("POST", "/v1/lookup", JSON.object(JSONObject([.init("url", .string(url))])).text)
        }
        #expect(await look("https://git.example.org/x")["secret"] == "access-1")
        for url in ["hidden", "proof", "audience", "none"].map({ "https://\($0).example/x" }) {
            #expect(await look(url).code == "policy_denied", "\(url)")
        }
        #expect(await exposed.ask("POST", "/v1/lookup", "{}").code == "validation_failed")
        for host in ["git.example.org", "hidden.example"] {
            let body = #"{"url":"https://\#(host)/","without_scheme":true}"#
            let answer = await exposed.ask("POST", "/v1/lookup", body)
            #expect(answer.code == "policy_denied" && !answer.text.contains("without_scheme"), "\(answer.text)")
        }
    }

    @Test func `of a restricted socket with a ceiling replace the token within it`() async throws {
        let exposed = try await ExposedHouse(["openid"])
        exposed.house.origins.configure([try origin("https://git.example.org/*")])
        let body = #"{"access_token":"downscoped-#","token_type":"Bearer","expires_in":3600,"scope":"openid"}"#
        for number in ["1", "2"] {
            exposed.house.provider.answerNext(.init(body: body.replacing("#", with: number)))
            let answer = await exposed.ask("POST", "/v1/lookup", #"{"url":"https://git.example.org/"}"#)
            #expect(answer["secret"]?.string == "downscoped-\(number)", "\(answer.text)")
            let digest = Digest.hex(Digest.sha256("downscoped-\(number)"))
            let request = #"{"url":"https://git.example.org/","rejected_sha256":"\#(digest)"}"#
            #expect(await exposed.ask("POST", "/v1/lookup", request).status == 200)
        }
    }
}
