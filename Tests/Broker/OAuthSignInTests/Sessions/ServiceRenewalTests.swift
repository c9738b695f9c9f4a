import OAuth
import RingbackBase
import Synchronization
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

private final class AssertionBox: Sendable {
    private let text = Mutex("one.two.three")
    func set(_ new: String) { text.withLock { $0 = new } }

    var source: ServiceGrant.AssertionSource {
        ServiceGrant.AssertionSource { _ throws(BrokerError) in
            do throws(OAuthError) {
                return try Assertion(parsing: Secret(self.text.withLock { $0 }))
            } catch {
                throw .misconfigured(.any)
            }
        }
    }
}

extension House {
    fileprivate static let service = House.named("build")

    fileprivate static func service(
        _ grant: ServiceGrant = ServiceGrant(.clientCredentials), scopes: [String] = ["deploy"]
    ) -> Account {
        var account = House.account(service, scopes: scopes)
        account.oauth.clientSecret = Account.SecretSource { () throws(BrokerError) in Secret("hush-secret") }
        account.oauth.grant = grant
        return account
    }

    fileprivate static func serving(
        _ grant: ServiceGrant = ServiceGrant(.clientCredentials), scopes: [String] = ["deploy"]
    ) async throws -> House {
        let house = try await House()
        await house.broker.configure([House.account(), House.service(grant, scopes: scopes)])
        return house
    }

    fileprivate func service(_ change: (inout SessionQuery) -> Void = { _ in }) async throws(BrokerError) -> IssuedToken
    {
        var query = SessionQuery()
        change(&query)
        return try await broker.session(House.service, query)
    }

    fileprivate func serviceToken() async throws(BrokerError) -> String { try await service().token.value.revealed() }
    fileprivate func serviceFailure(_ change: (inout SessionQuery) -> Void = { _ in }) async -> BrokerError? {
        await thrown(by: try await service(change))
    }
    fileprivate var serviceView: AccountView { get async throws { try await broker.account(House.service) } }
    fileprivate var hasWrittenNothing: Bool {
        get async { await vault.log.isEmpty }
    }
    fileprivate var forms: [[String: String]] {
        provider.requests.filter { $0.endpoint == .token }.map(\.form)
    }
}

@Suite(.timeLimit(.minutes(1))) struct `A service` {
    @Test func `is signed in by its configuration, and asks the provider when a caller asks`() async throws {
        let house = try await House.serving()
        #expect(await eventually { (try? await house.serviceView.state) == .authenticated })
        #expect(await house.hasWrittenNothing)
        #expect(house.provider.count(.token) == 0)
        let issuedToken = try await house.service()
        #expect(issuedToken.token.value == Secret("access-1") && issuedToken.subject == nil)
        #expect(issuedToken.issuer == "https://id.example" && issuedToken.token.scope == "deploy")
        #expect(house.forms == [["grant_type": "client_credentials", "scope": "deploy"]])
        _ = try await house.service()
        #expect(await house.hasWrittenNothing)
        #expect(house.provider.count(.token) == 1)
    }

    @Test func `fetches once for a thousand callers`() async throws {
        let house = try await House.serving()
        house.provider.hold(.token)
        let tokens = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<1_000 { group.addTask { try await house.serviceToken() } }
            #expect(await house.provider.arrived(.token, 1))
            house.provider.release(.token)
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(tokens == ["access-1"] && house.provider.count(.token) == 1)
    }

    @Test func `TX-03: has a token of its own for each scope, audience and resource`() async throws {
        let house = try await House.serving(ServiceGrant(.clientCredentials, audience: "usual"))
        let keys = [
            TokenKey.own, TokenKey(scopes: ["b", "a"]), TokenKey(audience: "x"), TokenKey(resource: "urn:r"),
            TokenKey(scopes: ["a"], audience: "x", resource: "urn:r"),
        ]
        var tokens: Set<String> = []
        for _ in 0..<2 {
            for key in keys { tokens.insert(try await house.service { $0.key = key }.token.value.revealed()) }
        }
        #expect(tokens.count == keys.count && house.provider.count(.token) == keys.count)
        let sent = house.forms.map {
            [$0["scope"], $0["audience"], $0["resource"]].map { $0 ?? "-" }.joined(separator: "|")
        }
        #expect(
            sent == ["deploy|usual|-", "a b|usual|-", "deploy|x|-", "deploy|usual|urn:r", "a|x|urn:r"], "\(sent)")
    }

    @Test func `is refreshed before its token expires, and never keeps a refresh token`() async throws {
        let house = try await House.serving()
        house.provider.script(.token, .setting("refresh_token", "keep-me"), .setting("refresh_token", "keep-me"))
        _ = try await house.service()
        // The loop waits by real time between two looks: its first look must find the refresh due.
        house.clock.advance(by: 3_500)
        let freshness = Task { await house.broker.keepFresh() }
        defer { freshness.cancel() }
        #expect(await house.provider.arrived(.token, 2))
        #expect(
            await eventually {
                house.broker.snapshot.current("build")?.entry.issuedToken.token.value == Secret("access-2")
            })
        #expect(house.forms.allSatisfy { $0["grant_type"] == "client_credentials" && $0["refresh_token"] == nil })
        #expect(await house.hasWrittenNothing)
    }

    @Test func `reads its assertion anew each time`() async throws {
        let box = AssertionBox()
        let house = try await House.serving(ServiceGrant(.jwtBearer, assertion: box.source, assertionPlace: "/a"))
        _ = try await house.service()
        box.set("four.five.six")
        _ = try await house.broker.refresh(House.service, isForced: true)
        #expect(house.forms.map { $0["assertion"] } == ["one.two.three", "four.five.six"])
    }

    @Test func `exchanges what the file holds`() async throws {
        let grant = ServiceGrant(
            .tokenExchange, assertion: AssertionBox().source, assertionPlace: "/a", resource: "urn:api")
        let house = try await House.serving(grant, scopes: [])
        house.provider.script(
            .token, .setting("issued_token_type", "urn:ietf:params:oauth:token-type:id_token"),
            .setting("token_type", "N_A"))
        for _ in 0..<2 {
            let failure = await house.serviceFailure()
            guard case .provider(.invalidResponse) = failure
            else { throw Unexpected("TX-02: \(String(describing: failure))") }
            house.clock.advance(by: 400)
        }
        #expect(try await house.serviceToken().hasPrefix("access-"))
        #expect(house.forms.last?["subject_token"] == "one.two.three" && house.forms.last?["resource"] == "urn:api")
        #expect(house.forms.last?["scope"] == nil)
    }

    @Test(arguments: ["invalid_client", "unauthorized_client", "invalid_grant", "unsupported_grant_type"])
    func `that is refused says so, and asks again no sooner than its back-off allows`(code: String) async throws {
        let house = try await House.serving()
        let no = FakeProvider.Turn.status(
            code == "invalid_client" ? 401 : 400, #"{"error":"\#(code)","error_description":"no: hush-secret"}"#)
        for _ in 0..<50 { house.provider.script(.token, no) }
        let expected = BrokerError.serviceRefused(House.service, code: code, message: nil)
        for _ in 0..<20 { #expect(await house.serviceFailure() == expected) }
        #expect(house.provider.count(.token) == 1)
        #expect(try await house.serviceView.state == .authenticated)
        #expect(try await house.serviceView.error == expected)
        // Nobody asks unasked: a day later it is still the one request.
        for _ in 0..<24 {
            house.clock.advance(by: 3_600)
            _ = await house.broker.sessionManager.runDueTasks()
        }
        #expect(await house.serviceFailure() == expected)
        #expect(house.provider.count(.token) == 2)
        // Who mends it need not wait.
        house.provider.unscript(.token)
        await house.broker.configure([House.account(), House.service()])
        #expect(try await house.serviceToken().hasPrefix("access-"))
        #expect(try await house.serviceView.error == nil)
    }

    @Test func `TX-04: whose app asks for too much tells that app alone`() async throws {
        let house = try await House.serving()
        _ = try await house.service()
        house.provider.script(.token, .status(400, #"{"error":"invalid_target"}"#))
        let failure = await house.serviceFailure { $0.key = TokenKey(audience: "elsewhere") }
        #expect(failure == .serviceRefused(House.service, code: "invalid_target", message: nil))
        #expect(try await house.serviceView.error == nil)
        #expect(try await house.serviceToken() == "access-1")
        #expect(try await house.service { $0.key = TokenKey(audience: "here") }.token.value == Secret("access-2"))
    }

    @Test func `serves its token while the provider is away, and is stale after that`() async throws {
        let house = try await House.serving()
        _ = try await house.service()
        house.provider.behave { _ in }
        for _ in 0..<20 { house.provider.script(.token, .fail(.unreachable(host: "id.example", reason: "away"))) }
        house.clock.advance(by: 3_550)
        #expect(try await house.serviceToken() == "access-1")
        house.clock.advance(by: 100)
        let failure = await house.serviceFailure()
        guard case .provider(.unreachable) = failure else { throw Unexpected(failure) }
        let view = try await house.serviceView
        #expect(view.state == .authenticated && view.isStale)
        house.provider.unscript(.token)
        house.clock.advance(by: 400)
        #expect(try await house.serviceToken().hasPrefix("access-"))
        #expect(try await !house.serviceView.isStale)
    }

    @Test func `is told at once that there is nothing to sign in to`() async throws {
        let house = try await House.serving()
        let start = try await house.broker.begin(House.service, SignInRequest())
        #expect(start.flow == nil && house.doors.opened == 0)
        var request = SignInRequest()
        request.method = SignInMethod(rawValue: "password")
        let wanted = request
        let failure = await thrown(by: try await house.broker.begin(House.service, wanted))
        guard case .methodUnsupported = failure else { throw Unexpected(failure) }
    }

    @Test func `that is signed out drops its tokens, revokes each, and is there again`() async throws {
        let house = try await House.serving()
        _ = try await house.service()
        _ = try await house.service { $0.key = TokenKey(audience: "x") }
        let view = try await house.broker.signOut(House.service).account
        #expect(view.state == .authenticated && view.expiresAt == nil)
        #expect(Set(house.provider.revoked) == ["access-1", "access-2"])
        #expect(house.broker.snapshot.current("build") == nil)
        #expect(try await house.serviceToken() == "access-3")
        let count = house.provider.count(.revocation)
        _ = try await house.broker.signOut(House.service)
        _ = try await house.broker.signOut(House.service)
        #expect(house.provider.count(.revocation) == count + 1)
    }

    @Test func `that replaces a user's account does not remove the user's session`() async throws {
        let house = try await House.signedIn()
        let log = await house.vault.log
        var service = House.account()
        service.oauth.clientSecret = Account.SecretSource { () throws(BrokerError) in Secret("hush-secret") }
        service.oauth.grant = ServiceGrant(.clientCredentials)
        await house.broker.configure([service])
        #expect(try await house.token().hasPrefix("access-"))
        #expect(house.forms.last?["grant_type"] == "client_credentials")
        _ = try await house.broker.signOut(House.name)
        #expect(await house.vault.log == log)
        await house.broker.configure([House.account()])
        #expect(try await house.broker.session(House.name, SessionQuery()).subject == "alice")
    }

    @Test func `that is configured with other scopes forgets its tokens`() async throws {
        let house = try await House.serving()
        _ = try await house.service()
        await house.broker.configure([House.account(), House.service(scopes: ["other"])])
        _ = try await house.service()
        #expect(house.forms.map { $0["scope"] } == ["deploy", "other"])
    }

    @Test func `has no ID token and no subject`() async throws {
        let house = try await House.serving()
        let failure = await house.serviceFailure { $0.kind = .idToken }
        guard case .methodUnsupported = failure else { throw Unexpected(failure) }
        #expect(house.provider.count(.token) == 0)
        guard case .conflict = await house.serviceFailure({ $0.subject = "alice" })
        else { throw Unexpected("a subject") }
    }

    @Test func `is out of reach while the vault is locked, and there when it opens`() async throws {
        let house = try await House.serving()
        _ = try await house.service()
        try await house.broker.lockVault()
        guard case .vaultLocked = await house.serviceFailure() else { throw Unexpected("not locked") }
        #expect(house.provider.count(.revocation) == 0)
        try await house.broker.unlockVault(passphrase: nil)
        #expect(try await house.serviceToken() == "access-2")
    }
}
