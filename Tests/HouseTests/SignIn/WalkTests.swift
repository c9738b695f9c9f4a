import RingbackBase
import Testing

private enum Way: String, CaseIterable {
    case loopback
    case open = "ringback open"
    case complete = "ringback complete, by argument"
    case completeFromInput = "ringback complete, by standard input"
}

/// What is left after a sign-in, without what differs from one to the next.
private struct Ending: Equatable {
    let login: Output
    let account: JSON
    let session: JSON
    let flow: JSON
    let exchanges: Int

    static func == (left: Ending, right: Ending) -> Bool {
        left.login.status == right.login.status && left.login.lines.dropFirst() == right.login.lines.dropFirst()
            && left.account.withoutHost == right.account.withoutHost && left.session == right.session
            && left.flow == right.flow
            && left.exchanges == right.exchanges
    }
}

extension JSON {
    /// Each sandbox has a port of its own.
    fileprivate var withoutHost: JSON {
        guard var object else { return self }
        object["provider_host"] = nil
        return .object(object)
    }
}

@Suite struct `The whole walk` {
    @Test func `loopback, ringback open and ringback complete end a sign-in alike`() async throws {
        var endings: [(Way, Ending)] = []
        for way in Way.allCases {
            try await Stage.play { endings.append((way, try await walk(way, $0))) }
        }
        let first = try #require(endings.first?.1)
        #expect(first.exchanges == 1)
        #expect(first.flow["status"]?.string == "completed")
        #expect(first.account["state"]?.string == "authenticated")
        for (way, ending) in endings { #expect(ending == first, "\(way.rawValue)") }
    }

    private func walk(_ way: Way, _ stage: Stage) async throws -> Ending {
        let login = try stage.start("ringback", ["login", "work", "--no-browser"])
        let url = try await login.line("the authorization URL")
        let callback = try await Browser.signIn(at: url)
        let flows = try await stage.api("GET", "/v1/flows")["flows"]?.array ?? []
        #expect(flows.count == 1)
        switch way {
        case .loopback:
            let (answer, page) = try await Browser.deliver(callback)
            #expect(answer.status == 303 && answer.location == "/done")
            #expect(page?.status == 200)
        case .open: try await check(stage.ringback("open", callback.text))
        case .complete: try await check(stage.ringback("complete", callback.text))
        case .completeFromInput: try await check(stage.ringback("complete", stdin: " \(callback)\n"))
        }
        let ended = try await login.end().expect(0)
        #expect(ended.lines == [url, "Signed in to work as alice@example.org"])
        let token = try await stage.ringback("token", "work", status: 0)
        #expect(token.err.isEmpty)
        #expect(token.out == "\(try await stage.token() ?? "")\n")
        let id = flows.first?["id"]?.string ?? ""
        return Ending(
            login: ended, account: lasting(try await stage.account()),
            session: lasting(try await stage.api("GET", "/v1/accounts/work/session?include=user").json),
            flow: lasting(try await stage.api("GET", "/v1/flows/\(id)").json),
            exchanges: try await stage.sandbox.counters().tokenRequests("authorization_code"))
    }

    private func check(_ output: Output) {
        #expect(output.status == 0 && output.out == "Signed in to work as alice@example.org\n", "\(output)")
    }

    /// Without what names a time, a place or a secret of one run.
    private func lasting(_ json: JSON) -> JSON {
        var object = json.object ?? JSONObject()
        for name in ["expires_at", "expires_in", "source", "access_token", "id", "issuer", "redirect_uri"] {
            object[name] = nil
        }
        return .object(object)
    }

    @Test func `NAT-40: ringback open hands over the callback of a custom scheme`() async throws {
        let scheme = "org.example.ringback-test://auth-callback"
        let configuration = Stage.twoAccounts.replacing(
            "[accounts.home]", with: "redirect_uri = \"\(scheme)\"\n\n[accounts.home]")
        try await Stage.play(configuration, sandboxArguments: ["--redirect-uri", scheme]) { stage in
            let login = try stage.start("ringback", ["login", "work", "--no-browser"])
            let url = try await login.line("the authorization URL")
            let callback = try await Browser.location(after: "user=bob&decision=allow", at: url)
            #expect(callback.hasPrefix(scheme + "?"))
            // The callback needs no listener; the address that a program opens has one.
            #expect(try await stage.api("GET", "/v1/status")["listeners"]?.array?.count == 1)
            try await stage.ringback("open", callback, status: 0, out: "Signed in to work as bob@example.org\n")
            #expect(try await login.end().lines.last == "Signed in to work as bob@example.org")
        }
    }

    /// ADV-17.
    @Test func `PR-13, NAT-10, NAT-14: the authorization URL has PKCE, state and nonce of 256 bits`() async throws {
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
        }
    }

    @Test func `the demo passes, and leaves nothing`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let output = try await stage.ringback(
                "demo", environment: ["TMPDIR": stage.directory], within: Bound.seconds(60), status: 0)
            #expect(output.lines.last == "Every step succeeded, and everything was removed again.")
            #expect(FileTree.names(in: stage.directory).filter { $0.hasPrefix("ringback-demo") } == [])
        }
    }
}
