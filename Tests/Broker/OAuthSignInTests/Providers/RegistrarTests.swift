import OAuth
import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite struct `A client's registration` {
    @Test func `is asked for once, and what is secret in the answer stays in the vault`() async throws {
        let office = await Office()
        let view = try await office.register()
        #expect(view.clientID == "c1" && view.authentication == "client_secret_basic" && view.hasSecret)
        #expect(view.isManaged && view.redirectURIs == ["http://127.0.0.1:4711/callback/work"])
        let request = try #require(office.server.registrations.first)
        #expect(office.server.registrations.count == 1 && request.url == "https://id.example/register")
        let asked = try JSON(parsing: request.body?.revealedBytes() ?? [])
        #expect(asked["token_endpoint_auth_method"] == "none" && asked["scope"] == "openid")
        let kept = try #require(await office.kept("c1"))
        #expect(kept.secret == Secret("hush-hush-hush") && kept.managements.map(\.token) == [Secret("reg-token-1")])
        #expect(try await office.secret() == Secret("hush-hush-hush"))
        // Room was made before anything was asked for, and the mark is gone.
        #expect(await office.vault.log.first == "announce")
        #expect(await office.vault.isAnnounced == false)
        #expect(office.words.contains("clientRegistered"))
    }

    @Test func `is bound to issuer and client: its secret is out of any other's reach`() async throws {
        let office = await Office()
        _ = try await office.register()
        for (issuer, client) in [("https://other.example", "c1"), (RegistrationServer.issuer, "c2")] {
            let refused = await thrown(by: try await office.secret(clientID: client, issuer: issuer))
            guard case .unusableSetting? = refused else { throw Unexpected(refused) }
        }
    }

    @Test func `DCR-05: its secret is not used after its end`() async throws {
        let office = await Office()
        let body = RegistrationServer.honest.replacing(
            "{\"client_id\"", with: "{\"client_secret_expires_at\":1000,\"client_id\"")
        office.server.register(.init(body: body))
        #expect(try await office.register().secretExpiresAt?.seconds == 1_000)
        let refused = await thrown(by: try await office.secret())
        guard case .unusableSetting(let setting)? = refused else { throw Unexpected(refused) }
        #expect(setting.hasExpired && setting.reason.oauth == .secretExpired(House.name))
    }

    @Test(arguments: [
        #"{"client_id":"","registration_access_token":"reg-token-1","registration_client_uri":"https://id.example/r"}"#,
        #"{"client_id":"c1","token_endpoint_auth_method":"private_key_jwt","registration_access_token":"reg-token-1","#
            + #""registration_client_uri":"https://id.example/r"}"#,
        #"{"registration_access_token":"reg-token-1","registration_client_uri":"https://id.example/r","client_id":"#,
    ])
    func `that cannot be used is deleted again`(body: String) async throws {
        let office = await Office()
        office.server.register(.init(body: body))
        let refused = await thrown(by: try await office.register())
        guard case .provider(.invalidResponse(let reason))? = refused else { throw Unexpected(refused) }
        #expect(reason.leftover == .deleted)
        #expect(office.server.deletions.map(\.url) == ["https://id.example/r"])
        #expect(office.server.deletions.first?.authorization == Secret("Bearer reg-token-1"))
        #expect(await office.kept(nil) == nil && office.words == ["registrationDeleted"])
    }

    @Test func `that cannot be used and not be deleted leaves what deletes it in the vault`() async throws {
        let office = await Office()
        office.server.register(
            .init(
                body:
                    #"{"registration_access_token":"reg-token-1","registration_client_uri":"https://id.example/r"}"#))
        office.server.delete(.init(failure: .timedOut(host: "id.example")))
        let refused = await thrown(by: try await office.register())
        guard case .provider(.invalidResponse(let reason))? = refused else { throw Unexpected(refused) }
        #expect(reason.leftover == .notDeleted(client: nil, isTokenKept: true))
        #expect(!reason.holds("reg-token-1"))
        #expect(await office.kept(nil)?.managements.map(\.token) == [Secret("reg-token-1")])
        #expect(office.words == ["registrationLeft"] && office.server.deletions.count == 1)
        // The next one that cannot be used does not push it out.
        office.server.register(
            .init(
                body:
                    #"{"registration_access_token":"reg-token-2","registration_client_uri":"https://id.example/s"}"#))
        _ = await thrown(by: try await office.register())
        let both = [Secret("reg-token-2"), Secret("reg-token-1")]
        #expect(await office.kept(nil)?.managements.map(\.token) == both)
        // Later somebody deletes them.
        office.server.delete(.init(status: 204, body: ""))
        #expect(
            try await Registrations(of: office.broker).delete(
                House.name, issuer: RegistrationServer.issuer, clientID: nil))
        #expect(await office.kept(nil) == nil)
    }

    @Test func `whose token comes without its place keeps the token`() async throws {
        let office = await Office()
        office.server.register(.init(body: #"{"registration_access_token":"reg-token-1"}"#))
        let refused = await thrown(by: try await office.register())
        guard case .provider(.invalidResponse(let reason))? = refused else { throw Unexpected(refused) }
        #expect(reason.leftover == .noDeletionURL(client: nil, isTokenKept: true) && office.server.deletions.isEmpty)
        #expect(
            await office.kept(nil)?.managements == [RegistrationManagement(token: Secret("reg-token-1"), uri: nil)])
    }

    @Test func `that was cut off on the way is deleted again, and why is said`() async throws {
        let office = await Office()
        office.server.register(.init(isTruncated: true))
        let refused = await thrown(by: try await office.register())
        guard case .provider(.invalidResponse(let reason))? = refused else { throw Unexpected(refused) }
        #expect(reason.holds("not valid HTTP") && reason.leftover == .deleted && office.server.deletions.count == 1)
    }

    @Test func `that the vault does not take is deleted again`() async throws {
        let office = await Office()
        office.server.hold()
        async let refused = error { try await office.register() }
        #expect(await eventually { office.server.registrations.count == 1 })
        await office.vault.fail(with: .unwritable(.diskFull))
        office.server.release()
        guard case .vaultFailed(.both(let cause, let rest))? = await refused else { throw Unexpected("not refused") }
        #expect(cause == .vault(.unwritable(.diskFull)))
        #expect(Reason.both(cause, rest).leftover == .deleted)
        #expect(office.server.deletions.count == 1)
    }

    @Test func `is not asked for while the vault could not keep it`() async {
        let office = await Office()
        await office.vault.failAnnouncing(with: .unwritable(.diskFull))
        #expect(
            await thrown(by: try await office.register())
                == .vaultFailed(.vault(.unwritable(.diskFull))))
        #expect(office.server.registrations.isEmpty)
    }

    @Test func `is not asked for with a vault in memory, nor for an account that is there`() async throws {
        let memory = Broker(
            vault: MemoryVault(), http: RegistrationServer(), callbackReceiver: Doors().callbackReceiver,
            clock: TestClock().clock)
        await memory.configure([])
        let order = RegistrationOrder(account: House.name, issuer: RegistrationServer.issuer)
        let office = await Office([House.account()])
        for broker in [memory, office.broker] {
            let refused = await thrown(by: try await Registrations(of: broker).register(order))
            guard case .conflict? = refused else { throw Unexpected(refused) }
        }
        #expect(office.server.requests.isEmpty)
    }

    @Test func `goes on when its caller disconnects`() async throws {
        let office = await Office()
        office.server.hold()
        let caller = Task { await error { try await office.register() } }
        #expect(await eventually { office.server.registrations.count == 1 })
        caller.cancel()
        #expect(await caller.value == .cancelled)
        office.server.release()
        await office.work.drain(atMost: .seconds(20))
        #expect(await office.kept("c1") != nil)
    }

    @Test(
        arguments: [
            ("registration_endpoint", nil, .noRegistrationEndpoint(issuer: RegistrationServer.issuer)),
            (
                "token_endpoint_auth_methods_supported", ["private_key_jwt"],
                .needsClientKey(issuer: RegistrationServer.issuer)
            ),
        ] as [(String, JSON?, OAuthReason)])
    func `is not possible at every provider`(member: String, value: JSON?, expected: OAuthReason) async throws {
        let office = await Office()
        office.server.describe(member, value)
        let refused = await thrown(by: try await office.register())
        guard case .unusableSetting(let setting)? = refused else { throw Unexpected(refused) }
        #expect(setting.setting == "client_id")
        #expect(setting.reason.oauth == expected && office.server.registrations.isEmpty)
    }

    @Test func `DCR-03: the provider's no is passed on without the token that was sent`() async {
        let office = await Office()
        office.server.register(
            .init(status: 401, body: #"{"error":"invalid_token","error_description":"no token initial-token-9"}"#))
        var order = office.order
        order.initialAccessToken = Secret("initial-token-9")
        let refused = await thrown(by: try await Registrations(of: office.broker).register(order))
        #expect(refused == .provider(.refused(code: "invalid_token", message: nil)))
        #expect(office.server.registrations.first?.authorization == Secret("Bearer initial-token-9"))
        #expect(await office.vault.isAnnounced == false)
        #expect(office.words.isEmpty)
    }

    @Test func `is asked for with fewer scopes where the provider refuses one that it does not list`() async throws {
        let office = await Office()
        office.server.describe("scopes_supported", ["openid", "email"])
        office.server.refuses(scope: "offline_access")
        var order = office.order
        order.scopes = ["openid", "offline_access", "email"]
        #expect(try await Registrations(of: office.broker).register(order).scopes == ["openid", "email"])
        #expect(office.server.registrations.count == 2)
        // One that is listed, or of a provider that lists none, is no reason to ask again.
        order.account = House.named("play")
        for listed: JSON? in [["openid", "email", "offline_access"], nil] {
            let other = await Office()
            other.server.describe("scopes_supported", listed)
            other.server.refuses(scope: "offline_access")
            let refused = await thrown(by: try await Registrations(of: other.broker).register(order))
            #expect(refused == .provider(.refused(code: "invalid_client_metadata", message: nil)))
            #expect(other.server.registrations.count == 1)
        }
    }

    @Test func `is deleted for good, and only if no account uses it`() async throws {
        let office = await Office()
        _ = try await office.register()
        await office.broker.configure([House.account(clientID: "c1")])
        let name = House.name
        let issuer = RegistrationServer.issuer
        let refused = await thrown(
            by: try await Registrations(of: office.broker).delete(name, issuer: issuer, clientID: "c1"))
        guard case .conflict? = refused else { throw Unexpected(refused) }
        await office.broker.configure([])
        office.server.delete(.init(status: 401, body: ""))
        #expect(
            await thrown(by: try await Registrations(of: office.broker).delete(name, issuer: issuer, clientID: "c1"))
                == .provider(.refused(code: "invalid_token", message: nil)))
        #expect(await office.kept("c1") != nil)
        office.server.delete(.init(status: 204, body: ""))
        #expect(try await Registrations(of: office.broker).delete(name, issuer: issuer, clientID: "c1"))
        #expect(await office.kept("c1") == nil && office.server.deletions.count == 2)
        let gone = await thrown(
            by: try await Registrations(of: office.broker).delete(name, issuer: issuer, clientID: "c1"))
        guard case .nothingHeld? = gone else { throw Unexpected(gone) }
    }

    @Test func `that cannot be managed is deleted only in the vault, and the result says so`() async throws {
        let office = await Office()
        office.server.register(.init(body: #"{"client_id":"c1"}"#))
        #expect(try await !office.register().isManaged)
        #expect(
            try await !Registrations(of: office.broker).delete(
                House.name, issuer: RegistrationServer.issuer, clientID: "c1"))
        #expect(await office.kept("c1") == nil && office.server.deletions.isEmpty)
    }
}
