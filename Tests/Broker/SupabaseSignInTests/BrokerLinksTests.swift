import Cryptography
import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `Identities at a project` {
    private let name = SupabaseHouse.name

    private func link(_ house: SupabaseHouse, _ provider: String = "apple") async throws -> FlowView {
        try #require(try await house.begin("link") { $0.oauthProvider = provider })
    }

    private func identities(_ house: SupabaseHouse) async throws -> [String] {
        try await house.view.user?["identities"]?.array?.compactMap { $0["provider"]?.string } ?? []
    }

    @Test func `are added in the browser, and the session before is ended at the server`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let former = house.session
        let flow = try await link(house)
        let asked = try #require(house.project.last("GET /user/identities/authorize"))
        #expect(asked.query["skip_http_redirect"] == "true")
        #expect(asked.query["redirect_to"] == flow.redirectURI)
        let callback = try house.project.consent(flow.authorizationURL)
        let events = try await house.events {
            let verdict = await house.broker.receive(callback)
            #expect(verdict == .completed(flow: flow.id))
        }
        #expect(events == [.userUpdated])
        #expect(try await identities(house) == ["email", "apple"])
        #expect(house.facts.names.contains("identityLinked"))
        #expect(await eventually { !house.project.sessions.contains(former) })
        #expect(house.project.sessions.count == 1)
        #expect(try await house.held?.project?.sessionID == house.session)
        #expect(await house.refresh() == nil)
    }

    @Test func `leave no other session at the server if the vault is locked meanwhile`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let former = house.session
        let flow = try await link(house)
        let callback = try house.project.consent(flow.authorizationURL)
        house.project.hold(FakeSupabase.exchange)
        let delivery = Task { await house.broker.receive(callback) }
        #expect(await house.project.arrived(FakeSupabase.exchange))
        try await house.broker.lockVault()
        house.project.release(FakeSupabase.exchange)
        guard case .failed(flow.id, .vaultLocked) = await delivery.value else { throw Unexpected() }
        #expect(await eventually { house.project.sessions.count == 1 })
        #expect(house.session == former)
    }

    @Test func `are added by an ID token, with its nonce alone`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let former = house.session
        guard
            case .invalid(field: "nonce", _) = await house.failure(
                "link",
                { fields in
                    fields.oauthProvider = "google"
                    fields.idToken = Secret("\(SupabaseHouse.alice);")
                })
        else { throw Unexpected() }
        #expect(house.project.count("POST /token id_token") == 0)
        let flow = try await house.begin("link") { fields in
            fields.oauthProvider = "google"
            fields.idToken = Secret("\(SupabaseHouse.alice);\(Digest.hex(Digest.sha256("n")))")
            fields.nonce = Secret("n")
        }
        #expect(flow == nil)
        let asked = try #require(house.project.last("POST /token id_token"))
        #expect(asked.body["link_identity"] == true)
        #expect(asked.bearer != nil)
        #expect(try await identities(house) == ["email", "google"])
        #expect(await eventually { !house.project.sessions.contains(former) })
    }

    @Test func `are refused with the server's word where they belong to somebody else`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let before = try await house.held
        let flow = try await link(house)
        let tail = "?error=server_error&error_code=identity_already_exists&error_description=x"
        guard case .failed(_, .problem(let problem)) = await house.broker.receive(flow.redirectURI + tail)
        else { throw Unexpected() }
        #expect(problem.providerCode == "identity_already_exists")
        #expect(try await house.held == before)
    }

    @Test func `keep what was agreed for the session before`() async throws {
        let house = try await SupabaseHouse()
        try await house.walk { fields in
            fields.keepsProviderToken = true
            fields.isPersistent = false
        }
        let flow = try await link(house)
        _ = await house.broker.receive(try house.project.consent(flow.authorizationURL))
        #expect(try await house.held?.project?.providerToken == Secret("upstream-access"))
        #expect(try await house.held?.isEphemeral == true)
        #expect(await house.vault.sessions.isEmpty)
    }

    @Test func `sign nobody in again who has signed out meanwhile`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let flow = try await link(house)
        let callback = try house.project.consent(flow.authorizationURL)
        _ = try await house.broker.signOut(name)
        #expect(await house.broker.receive(callback) == .failed(flow: flow.id, .signInRequired(name)))
        #expect(try await house.view.state == .unauthenticated)
        #expect(await house.vault.sessions.isEmpty)
        // What the server made for it does not stay there.
        #expect(await eventually { house.project.sessions.isEmpty })
    }

    @Test func `are added by somebody who is signed in`() async throws {
        let house = try await SupabaseHouse()
        #expect(await house.failure("link") { $0.oauthProvider = "apple" } == .signInRequired(name))
        #expect(house.doors.opened == house.doors.closed.count)
        #expect(house.project.requests.isEmpty)
    }

    @Test func `are taken away, but not the last one`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let flow = try await link(house)
        _ = await house.broker.receive(try house.project.consent(flow.authorizationURL))
        let all = try await house.view.user?["identities"]?.array ?? []
        let apple = try #require(all.last?["identity_id"]?.string)
        let user = try await house.broker.supabase.unlink(name, identity: apple)
        #expect(user["identities"]?.array?.count == 1)
        #expect(house.facts.names.contains("identityUnlinked"))
        let email = try #require(all.first?["identity_id"]?.string)
        let last = await error {
            try await house.broker.supabase.unlink(name, identity: email)
        }
        #expect(last?.word == "single_identity_not_deletable")
    }
}
