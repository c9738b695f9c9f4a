import Cryptography
import OAuth
import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

/// The proof of a request (RFC 9449 section 4.2), unverified.
private struct Proof: Equatable {
    let thumbprint: String
    let id: String
    let url: String
    let method: String
    let issuedAt: Int
    let nonce: String?
    let tokenHash: String?

    init?(_ text: String?) {
        let parts = (text ?? "").split(separator: ".").prefix(2).compactMap { Base64URL.decode($0) }
        guard parts.count == 2, let header = try? JSON(parsing: parts[0]), let claims = try? JSON(parsing: parts[1]),
            let jwk = header["jwk"]?.object
        else { return nil }
        thumbprint = Base64URL.encode(Digest.sha256(JSON.object(jwk).text))
        id = claims["jti"]?.string ?? ""
        url = claims["htu"]?.string ?? ""
        method = claims["htm"]?.string ?? ""
        issuedAt = claims["iat"]?.integer ?? 0
        nonce = claims["nonce"]?.string
        tokenHash = claims["ath"]?.string
    }
}

extension House {
    fileprivate static func binding(
        _ use: DPoPUse, offers algorithms: JSON? = ["RS256", "ES256"], _ change: (inout Account) -> Void = { _ in }
    ) async throws -> House {
        let house = try await House { account in
            account.oauth.dpop = use
            change(&account)
        }
        house.provider.behave { $0.metadata["dpop_signing_alg_values_supported"] = algorithms }
        return house
    }

    /// The next successful responses of the token endpoint say that the access token is bound.
    fileprivate func bind(_ count: Int = 1) {
        for _ in 0..<count { provider.script(.token, .setting("token_type", "DPoP")) }
    }

    fileprivate func refuse(
        _ endpoint: FakeProvider.Endpoint = .token, _ error: String = "use_dpop_nonce", _ fields: (String, String)...
    ) {
        let status = endpoint == .userinfo ? 401 : 400
        let challenge = endpoint == .userinfo ? [("WWW-Authenticate", "DPoP error=\"\(error)\"")] : []
        provider.script(endpoint, .answer(status, #"{"error":"\#(error)"}"#, fields + challenge))
    }

    fileprivate func proofs(_ endpoint: FakeProvider.Endpoint = .token) -> [Proof?] {
        provider.requests.filter { $0.endpoint == endpoint }.map { Proof($0.proof) }
    }

    fileprivate var held: Session? { get async { await broker.sessionManager.held(House.name) } }
}

@Suite(.timeLimit(.minutes(1))) struct `A session that is bound to a key` {
    private func isCompleted(_ verdict: CallbackVerdict) -> Bool {
        if case .completed = verdict { true } else { false }
    }

    @Test func `proves one key at the code, at userinfo and at each refresh, also after a restart`() async throws {
        let house = try await House.binding(.required)
        house.bind(3)
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        let query = try FormEncoding.parse(WebURL(parsing: flow.authorizationURL).query ?? "")
        #expect(isCompleted(try await house.finish(flow)))
        house.clock.advance(by: 3_600)
        _ = try await house.token()
        house.clock.advance(by: 3_600)
        let later = house.rebirth()
        var account = House.account()
        account.oauth.dpop = .required
        await later.configure([account])
        #expect(try await later.session(House.name, SessionQuery()).token.type == "DPoP")
        let proofs = house.proofs().compactMap(\.self)
        #expect(proofs.count == 3 && Set(proofs.map(\.id)).count == 3)
        #expect(Set(proofs.map(\.thumbprint)) == [query.first { $0.name == "dpop_jkt" }?.value])
        #expect(
            proofs.allSatisfy { $0.url == "https://id.example/token" && $0.method == "POST" && $0.tokenHash == nil })
        let request = try #require(house.provider.requests.first { $0.endpoint == .userinfo })
        let proof = try #require(Proof(request.proof))
        let token = request.authorization?.split(separator: " ")
        #expect(token?.first == "DPoP" && proof.thumbprint == proofs[0].thumbprint && proof.method == "GET")
        #expect(proof.tokenHash == Base64URL.encode(Digest.sha256(String(token?.last ?? ""))))
    }

    @Test func `has a key of its own for each sign-in, the same on both of its pages`() async throws {
        let house = try await House.binding(.required) { $0.oauth.pushedRequests = .automatic }
        house.provider.behave {
            $0.metadata["pushed_authorization_request_endpoint"] = "https://id.example/par"
            $0.metadata["require_pushed_authorization_requests"] = true
        }
        house.refuse(.pushed, "use_dpop_nonce", ("DPoP-Nonce", "n1"))
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        // FAPI 2.0 section 5.3.3.2
        let shown = try FormEncoding.parse(WebURL(parsing: flow.authorizationURL).query ?? "")
        #expect(shown.map(\.name) == ["client_id", "request_uri"])
        let pending = try #require(await house.broker.flowRegistry.entries[flow.id]?.flow)
        let provider = pending.account.provider(with: house.broker.tools)
        _ = try await provider.anotherPage(of: pending, in: house.broker.signInContext)
        let pushed = house.provider.requests.filter { $0.endpoint == .pushed }
        let proofs = pushed.compactMap { Proof($0.proof) }
        // The first was sent twice, with a nonce at the second time.
        #expect(proofs.map(\.nonce) == [nil, "n1", "n1"] && Set(proofs.map(\.id)).count == 3)
        #expect(Set(proofs.map(\.thumbprint)).union(pushed.map { $0.form["dpop_jkt"] ?? "" }).count == 1)
        house.bind()
        #expect(isCompleted(try await house.finish(flow)))
        let first = try #require(await house.held?.proofKey)
        house.bind()
        try await house.signIn()
        #expect(await house.held?.proofKey != first)
    }

    @Test func `takes the server's newest nonce from any response, and repeats a request once`() async throws {
        let house = try await House.binding(.automatic)
        house.refuse(.token, "use_dpop_nonce", ("DPoP-Nonce", "n1"))
        house.bind()
        house.refuse(.userinfo, "use_dpop_nonce", ("DPoP-Nonce", "u1"))
        try await house.signIn()
        #expect(house.proofs().map { $0?.nonce } == [nil, "n1"])
        // The nonce of one role is none of the other.
        #expect(house.proofs(.userinfo).map { $0?.nonce } == [nil, "u1"])
        house.clock.advance(by: 3_600)
        let body = #"{"access_token":"a9","token_type":"DPoP","expires_in":3600,"refresh_token":"r9"}"#
        house.provider.script(.token, .answer(200, body, [("DPoP-Nonce", "n2")]))
        #expect(try await house.token() == "a9")
        house.clock.advance(by: 3_600)
        house.provider.script(.token, .answer(200, body, []))
        _ = try await house.token()
        #expect(house.proofs().map { $0?.nonce } == [nil, "n1", "n1", "n2"])
        #expect(Set(house.proofs().map { $0?.id }).count == 4)
    }

    @Test func `repeats a request with the nonce of its own refusal, which no other has before`() async throws {
        let house = try await House.binding(.automatic)
        let memory: ProofMemory = house.broker.tools.memory()
        let server = ProofTerms.Server(origin: "https://id.example", role: .authorization)
        func refused(_ nonce: String) throws -> ProofTerms {
            let response = HTTPResponse(
                status: 400, fields: HTTPFields([("DPoP-Nonce", nonce)]), body: Secret(#"{"error":"use_dpop_nonce"}"#))
            return try #require(memory.learn(from: response, of: server, after: memory.terms(of: server)))
        }
        let (first, second) = (try refused("n1"), try refused("n2"))
        #expect(first.nonce == "n1" && second.nonce == "n2" && memory.terms(of: server).nonce == nil)
        let success = HTTPResponse(status: 200)
        #expect(memory.learn(from: success, of: server, after: first, isRepeated: true) == nil)
        #expect(memory.terms(of: server).nonce == "n1")
    }

    @Test(arguments: ["use_dpop_nonce", "invalid_dpop_proof"])
    func `is not lost to a server that refuses every proof`(error: String) async throws {
        let house = try await House.binding(.automatic)
        house.bind()
        try await house.signIn()
        let stored = await house.vault.sessions
        house.clock.advance(by: 3_600)
        for nonce in ["n1", "n2", "n3"] { house.refuse(.token, error, ("DPoP-Nonce", nonce)) }
        let failure = await house.failure()
        #expect(failure?.kind == "provider.refused")
        // The sign-in's, the refresh and its one repetition.
        #expect(house.proofs().map { $0?.nonce } == [nil, nil, "n1"])
        #expect(try await house.view.state == .authenticated)
        #expect(await house.vault.sessions == stored)
        house.provider.unscript(.token)
        house.bind()
        house.clock.advance(by: 86_400)
        _ = try await house.token()
    }

    @Test func `keeps its client where the server refuses every proof by a challenge alone`() async throws {
        let house = try await House.binding(.automatic)
        house.bind()
        try await house.signIn()
        house.clock.advance(by: 3_600)
        for nonce in ["n1", "n2"] {
            let fields = [("WWW-Authenticate", "DPoP error=\"use_dpop_nonce\""), ("DPoP-Nonce", nonce)]
            house.provider.script(.token, .answer(401, "", fields))
        }
        let failure = await house.failure()
        #expect(failure?.kind == "provider.refused" && failure?.disownsClient == false)
        #expect(house.proofs().count == 3)
        #expect(try await house.view.state == .authenticated)
    }

    @Test func `is not repeated for a nonce that the server does not state, or that was sent`() async throws {
        let house = try await House.binding(.automatic)
        house.bind()
        try await house.signIn()
        house.clock.advance(by: 3_600)
        house.refuse(.token)
        #expect(await house.failure() != nil)
        #expect(house.proofs().count == 2)
        house.clock.advance(by: 86_400)
        for _ in 0..<3 { house.refuse(.token, "use_dpop_nonce", ("DPoP-Nonce", "n1")) }
        #expect(await house.failure() != nil)
        #expect(house.proofs().count == 4)
    }

    @Test func `dates its proofs by a server whose clock differs, and says so`() async throws {
        let house = try await House.binding(.automatic)
        let ahead = house.clock.now + 600
        house.refuse(.token, "invalid_dpop_proof", ("Date", HTTPDate.text(of: ahead)))
        house.bind(2)
        try await house.signIn()
        #expect(house.proofs().map { $0?.issuedAt } == [ahead - 600, ahead])
        let facts = house.facts.all.compactMap { fact in
            if case .clockDiffers(_, let host, let seconds) = fact { "\(host) \(seconds)" } else { nil as String? }
        }
        #expect(facts == ["id.example 600"])
        house.clock.advance(by: 3_600)
        _ = try await house.token()
        #expect(house.proofs().last??.issuedAt == house.clock.now + 600)
        let findings = try await Diagnostics(of: house.broker).findings(of: House.name)
        #expect(
            findings.contains {
                $0.message.oauth == .dpop(host: "id.example", .bound, clockLead: 600) && $0.cause == .clockDiffers
            })
        // A clock that agrees is not the cause.
        house.clock.advance(by: 3_600)
        house.refuse(
            .token, "invalid_dpop_proof", ("Date", HTTPDate.text(of: house.clock.now + 604)))
        let count = house.proofs().count
        #expect(await house.failure() != nil)
        #expect(house.proofs().count == count + 1)
        // Somebody sets our clock right. Nothing is wrong with the proofs that follow.
        house.clock.setWall(by: 600)
        house.clock.advance(by: 86_400)
        house.bind()
        _ = try await house.token()
        #expect(house.proofs().last??.issuedAt == house.clock.now)
        #expect(
            try await Diagnostics(of: house.broker).findings(of: House.name).contains {
                $0.message.oauth == .dpop(host: "id.example", .bound, clockLead: 0) && $0.cause == nil
            })
    }
}

@Suite(.timeLimit(.minutes(1))) struct `The setting dpop` {
    private func isCompleted(_ verdict: CallbackVerdict) -> Bool {
        if case .completed = verdict { true } else { false }
    }

    @Test(arguments: [
        (DPoPUse.off, "Bearer", true, false), (.off, "DPoP", false, false), (.refreshOnly, "Bearer", true, true),
        (.refreshOnly, "DPoP", false, true), (.required, "Bearer", false, true), (.required, "DPoP", true, true),
        (.automatic, "Bearer", true, true), (.automatic, "DPoP", true, true),
    ])
    func `says which access tokens are taken`(use: DPoPUse, type: String, isTaken: Bool, isProven: Bool) async throws {
        let house = try await House.binding(use)
        house.provider.script(.token, .setting("token_type", .string(type)))
        let verdict = try await house.signIn()
        #expect(isCompleted(verdict) == isTaken)
        #expect((house.proofs() != [nil]) == isProven)
        let held = await house.held
        #expect((held?.proofKey != nil) == (isTaken && isProven))
        if !isTaken, isProven {
            let error = try await house.view.error
            guard case .provider(.invalidResponse(let reason))? = error else { throw Unexpected() }
            #expect(reason.holds("dpop = \\\"\(use.rawValue)\\\"") || reason.holds("dpop = \"\(use.rawValue)\""))
        }
    }

    @Test func `leaves the session as it was if a new sign-in brings the other kind`() async throws {
        let house = try await House.binding(.required)
        house.bind()
        try await house.signIn()
        let key = await house.held?.proofKey
        #expect(key != nil)
        #expect(!isCompleted(try await house.signIn()))
        #expect(await house.held?.proofKey == key)
    }

    @Test func `is refused where the provider offers no ES256, or another program made the session`() async throws {
        for use in [DPoPUse.required, .refreshOnly] {
            for offered in [nil, ["RS256"]] as [JSON?] {
                let house = try await House.binding(use, offers: offered)
                let failure = await thrown(by: try await house.broker.signIn(House.name, SignInRequest()))
                guard case .unusableSetting(let setting)? = failure else { throw Unexpected() }
                #expect(setting.setting == "dpop")
                #expect(setting.reason.oauth == .dpopNotOffered(House.name, use: use.rawValue, host: "id.example"))
                let findings = try await Diagnostics(of: house.broker).findings(of: House.name)
                #expect(findings.contains { $0.level == .wrong && $0.setting == "dpop" })
            }
            let house = try await House.binding(use)
            var request = SignInRequest(method: OAuthMethod.session.method)
            request.details = HandedInSession(refreshToken: Secret("theirs"))
            let failure = await thrown(by: try await house.broker.signIn(House.name, request))
            guard case .unusableSetting(let setting)? = failure else { throw Unexpected() }
            #expect(setting.reason.oauth == .dpopOfOtherProgram(House.name, use: use.rawValue))
        }
    }

    @Test func `of an MCP server's account uses what there is`() async throws {
        let house = try await House.binding(.automatic, offers: nil)
        try await house.signIn()
        #expect(house.proofs() == [nil])
        #expect(await house.held?.proofKey == nil)
    }

    @Test func `turned off later, leaves a bound session its proofs`() async throws {
        let house = try await House.binding(.required)
        house.bind(2)
        try await house.signIn()
        await house.broker.configure([House.account()])
        house.clock.advance(by: 3_600)
        _ = try await house.token()
        #expect(Set(house.proofs().map { $0?.thumbprint }).count == 1)
    }

    @Test func `binds the tokens of a service to one key, in memory alone`() async throws {
        let house = try await House.binding(.required) { account in
            account.oauth.clientSecret = Account.SecretSource { () throws(BrokerError) in Secret("hush") }
            account.oauth.grant = ServiceGrant(.clientCredentials)
        }
        house.bind()
        house.refuse(.token, "use_dpop_nonce", ("DPoP-Nonce", "n1"))
        house.bind()
        #expect(try await house.broker.session(House.name, SessionQuery()).token.type == "DPoP")
        let other = SessionQuery { $0.key = TokenKey(audience: "x") }
        #expect(try await house.broker.session(House.name, other).token.type == "DPoP")
        let proofs = house.proofs().compactMap(\.self)
        #expect(proofs.map(\.nonce) == [nil, nil, "n1"] && Set(proofs.map(\.thumbprint)).count == 1)
        #expect(await house.vault.log.isEmpty)
    }

    @Test func `proves anew at each question about a device`() async throws {
        let house = try await DeviceHouse { $0.oauth.dpop = .automatic }
        house.server.provider.behave { $0.metadata["dpop_signing_alg_values_supported"] = ["ES256"] }
        house.server.script([.pending, .pending, .yes()])
        let flow = try await house.begin()
        await house.live(flow.id)
        #expect(try await house.status(flow.id) == .completed)
        let proofs = house.server.questions.compactMap { Proof($0.proof) }
        #expect(proofs.count == 3 && Set(proofs.map(\.id)).count == 3 && Set(proofs.map(\.thumbprint)).count == 1)
        #expect(await house.broker.sessionManager.held(House.name)?.proofKey != nil)
    }
}
