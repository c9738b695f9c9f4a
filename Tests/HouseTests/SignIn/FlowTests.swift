import RingbackBase
import Testing

@Suite struct `A flow` {
    @Test func `is joined by an equal sign-in`() async throws {
        try await Stage.play { stage in
            let first = try await stage.api("POST", "/v1/accounts/work/sign-in", ["method": "browser"])
            #expect(first.status == 201 && first["status"]?.string == "pending", "\(first)")
            let second = try await stage.api("POST", "/v1/accounts/work/sign-in")
            #expect(second.status == 200, "\(second)")
            #expect(second["id"] == first["id"] && second["authorization_url"] == first["authorization_url"])
            #expect(try await stage.api("GET", "/v1/flows")["flows"]?.array?.count == 1)
            let account = try await stage.account()
            #expect(account["state"]?.string == "authenticating")
            #expect(account["flow"] == ["id": first["id"] ?? .null, "method": "browser"])
        }
    }

    @Test func `is one for twenty equal sign-ins at once`() async throws {
        try await Stage.play { stage in
            let answers = try await withThrowingTaskGroup(of: Answer.self) { group in
                for _ in 0..<20 { group.addTask { try await stage.api("POST", "/v1/accounts/work/sign-in", [:]) } }
                return try await group.reduce(into: [Answer]()) { $0.append($1) }
            }
            #expect(answers.count { $0.status == 201 } == 1 && answers.count { $0.status == 200 } == 19)
            #expect(Set(answers.map { $0["id"]?.string }).count == 1)
        }
    }

    @Test func `keeps a different sign-in out, and says which is pending`() async throws {
        try await Stage.play { stage in
            let flow = try await stage.begin()
            for body: JSON in [
                ["scopes": "openid"], ["params": ["login_hint": "bob"]], ["switch_subject": true],
            ] {
                let answer = try await stage.api("POST", "/v1/accounts/work/sign-in", body)
                #expect(answer.status == 409 && answer.code == "state_conflict", "\(answer)")
                let detail = answer["detail"]?.string ?? ""
                #expect(detail.contains("method browser") && detail.contains("seconds old"), "\(detail)")
            }
            // Another account's is its own affair.
            _ = try await stage.begin("home", ["scopes": "openid"])
            #expect(try await stage.api("GET", "/v1/flows/\(flow.id)")["status"]?.string == "pending")
        }
    }

    @Test func `ends when the last caller who wanted it cancels`() async throws {
        try await Stage.play { stage in
            let flow = try await stage.begin()
            #expect(try await stage.begin().id == flow.id)
            let first = try await stage.api("DELETE", "/v1/flows/\(flow.id)")
            #expect(first.status == 200 && first["status"]?.string == "pending")
            let last = try await stage.api("DELETE", "/v1/flows/\(flow.id)")
            #expect(last.status == 200 && last["status"]?.string == "cancelled")
            // A flow that has ended stays as it is, and can be read.
            #expect(try await stage.api("DELETE", "/v1/flows/\(flow.id)")["status"]?.string == "cancelled")
            #expect(try await stage.api("GET", "/v1/flows/\(flow.id)")["status"]?.string == "cancelled")
            try await stage.expectNothingHeld(error: nil)
            // The place is free again.
            #expect(try await stage.begin().id != flow.id)
        }
    }

    @Test func `ends for all who wait when one says so`() async throws {
        try await Stage.play { stage in
            let logins = try (0..<3).map { _ in try stage.start("ringback", ["login", "work", "--no-browser"]) }
            for login in logins { _ = try await login.line() }
            let id = try await stage.api("GET", "/v1/flows")["flows"]?.array?.first?["id"]?.string ?? ""
            let answer = try await stage.api("DELETE", "/v1/flows/\(id)?all=true")
            #expect(answer["status"]?.string == "cancelled")
            for login in logins {
                let ended = try await login.end()
                #expect(ended.status == 4 && ended.lines.count == 1, "\(ended)")
            }
        }
    }

    @Test func `that is unknown is not found`() async throws {
        try await Stage.play { stage in
            for method in ["GET", "DELETE"] {
                let answer = try await stage.api(method, "/v1/flows/unknown")
                #expect(answer.status == 404 && answer.code == "flow_not_found")
            }
        }
    }

    @Test func `is waited for by a long poll, and answered as it is after the wait`() async throws {
        try await Stage.play { stage in
            let flow = try await stage.begin()
            let poll = try await stage.api("GET", "/v1/flows/\(flow.id)?wait=1")
            #expect(poll.status == 200 && poll["status"]?.string == "pending")
            async let waiting = stage.api("GET", "/v1/flows/\(flow.id)?wait=60")
            _ = try await Browser.deliver(Browser.signIn(at: flow.authorizationURL))
            #expect(try await waiting["status"]?.string == "completed")
            #expect(try await stage.api("GET", "/v1/flows/\(flow.id)?wait=soon").status == 400)
        }
    }

    @Test func `is waited for by a caller who wants a session`() async throws {
        try await Stage.play { stage in
            async let session = stage.api("GET", "/v1/accounts/work/session?sign_in=wait")
            let events = try stage.connect()
            await events.send(Stage.request("GET", "/v1/events?account=work"))
            _ = try await events.read(through: "initial_session")
            var flow: JSON?
            let end = ContinuousClock.now + Bound.usual
            while flow == nil, ContinuousClock.now < end {
                flow = try await stage.api("GET", "/v1/flows")["flows"]?.array?.first
            }
            _ = try await Browser.deliver(Browser.signIn(at: flow?["authorization_url"]?.string ?? ""))
            let answer = try await session
            #expect(answer.status == 200 && answer["subject"]?.string == "alice", "\(answer)")
            #expect(try await events.read(through: "signed_in").contains("\"at-") == false)
            // A sign-in that does not come is waited for as long as the caller says.
            let late = try await stage.api("GET", "/v1/accounts/home/session?sign_in=wait&timeout=1")
            #expect(late.status == 504 && late.code == "timeout", "\(late)")
        }
    }

    /// ADV-17.
    @Test func `PR-13, NAT-10, NAT-14: carries PKCE, state, nonce of 256 bits, and what the caller adds`() async throws
    {
        try await Stage.play { stage in
            let flow = try await stage.begin("work", ["params": ["login_hint": "bob@example.org"], "timeout": 60])
            let url = try LocalURL(flow.authorizationURL)
            #expect(url["code_challenge_method"] == "S256" && url["response_type"] == "code")
            #expect(url["login_hint"] == "bob%40example.org")
            for name in ["state", "code_challenge"] { #expect(url[name]?.utf8.count == 43, "\(name)") }
            // A digest: whoever is shown the ID token later may be shown what it was made of.
            let nonce = url["nonce"] ?? ""
            #expect(nonce.utf8.count == 64 && nonce.allSatisfy(\.isHexDigit))
            #expect(Set(url.parameters.map(\.name)).count == url.parameters.count)
            let other = try LocalURL(await stage.begin("home").authorizationURL)
            for name in ["state", "nonce", "code_challenge"] { #expect(url[name] != other[name]) }
            for name in ["state", "redirect_uri", "client_id", "code_challenge", "scope", "nonce"] {
                let body: JSON = .object(JSONObject([.init("params", .object(JSONObject([.init(name, "x")])))]))
                let answer = try await stage.api("POST", "/v1/accounts/work/sign-in", body)
                #expect(answer.status == 400 && answer.code == "validation_failed", "\(name): \(answer)")
            }
        }
    }
}
