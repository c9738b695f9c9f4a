import RingbackBase
import SessionVault
import SupabaseAuth
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `What is linked in silence` {
    private let name = SupabaseHouse.name

    private func told(_ house: SupabaseHouse) -> [String] {
        house.facts.all.compactMap { fact in
            switch fact {
            case .identityLinked(_, let provider, .former(let at)): "+\(provider) former \(at.seconds)"
            case .identityLinked(_, let provider, let sight): "+\(provider) \(sight)"
            case .identityUnlinked(_, let provider, let isInferred): "-\(provider)\(isInferred ? " inferred" : "")"
            default: nil
            }
        }
    }

    private func signOut(_ house: SupabaseHouse) async throws { _ = try await house.broker.signOut(name) }

    private func change(_ house: SupabaseHouse, _ change: @escaping @Sendable (inout SupabaseServer.User) -> Void) {
        house.project.behave { server in
            guard let user = server.user(email: SupabaseHouse.alice) else { return }
            var changed = user
            change(&changed)
            server.users[user.id] = changed
        }
    }

    private func add(_ house: SupabaseHouse, _ id: String, _ provider: String, at made: String, last: String? = nil) {
        change(house) { user in
            user.identities.append(SupabaseServer.Identity(id: id, provider: provider, createdAt: made))
            user.lastSignInAt = last
        }
    }

    @Test func `by a sign-in with the same address is seen, even for a new user`() async throws {
        let house = try await SupabaseHouse.signedIn()
        #expect(told(house) == [])
        try await signOut(house)
        try await house.walk()
        #expect(told(house) == ["+google inferred"])
        // Once.
        try await signOut(house)
        try await house.walk()
        #expect(await house.refresh() == nil)
        #expect(told(house) == ["+google inferred"])
    }

    @Test func `while the account is signed out is seen by the next daemon`() async throws {
        let house = try await SupabaseHouse.signedIn()
        try await signOut(house)
        add(house, "i-1", "github", at: "2026-03-02T08:14:56Z")
        let reborn = try await house.rebirth()
        _ = try await reborn.begin(name, password(house))
        #expect(told(house) == ["+github inferred"])
        _ = try await reborn.signOut(name)
        change(house) { $0.identities.removeAll { $0.provider == "github" } }
        _ = try await reborn.begin(name, password(house))
        #expect(told(house) == ["+github inferred", "-github inferred"])
    }

    private func password(_ house: SupabaseHouse) -> SignInRequest {
        house.request("password") { fields in
            fields.email = SupabaseHouse.alice
            fields.password = SupabaseHouse.secret
        }
    }

    @Test func `and while a session is held, with its next refresh`() async throws {
        let house = try await SupabaseHouse.signedIn()
        add(house, "i-1", "github", at: "2026-08-02T08:14:56Z")
        #expect(await house.refresh() == nil)
        #expect(told(house) == ["+github inferred"])
        try await signOut(house)
        try await house.signIn()
        #expect(told(house) == ["+github inferred"])
    }

    @Test func `to a stranger is seen by its age, and what is old is so told`() async throws {
        let house = try await SupabaseHouse()
        add(house, "i-1", "github", at: "2026-08-02T08:00:00Z", last: "2026-08-02T08:00:04Z")
        add(house, "i-2", "gitlab", at: "2026-05-02T08:00:00Z", last: "2026-08-02T08:00:04Z")
        try await house.signIn()
        #expect(told(house) == ["+github inferred", "+gitlab former 1777708800"])
    }

    @Test func `is nothing to who has just signed up`() async throws {
        let house = try await SupabaseHouse()
        try await house.walk(as: "new@example.org")
        _ = try await house.begin("anonymous", switching: true)
        #expect(told(house) == [])
    }

    @Test func `differs from a link that a caller requested`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let link = try #require(try await house.begin("link") { $0.oauthProvider = "apple" })
        _ = await house.broker.receive(try house.project.consent(link.authorizationURL))
        let apple = try await house.view.user?["identities"]?.array?.last?["identity_id"]?.string
        _ = try await house.broker.supabase.unlink(name, identity: try #require(apple))
        #expect(told(house) == ["+apple asked", "-apple"])
        // Known, too, to the next sign-in.
        try await signOut(house)
        try await house.signIn()
        #expect(told(house) == ["+apple asked", "-apple"])
    }

    @Test func `is remembered for each user, but not for ephemeral sessions`() async throws {
        let house = try await SupabaseHouse()
        house.project.behave { _ = $0.addUser(email: "bob@example.org", password: SupabaseHouse.secret.revealed()) }
        try await house.signIn(email: "bob@example.org", isPersistent: false)
        #expect(try await known(house) == nil)
        try await house.signIn(switching: true)
        try await house.signIn(email: "bob@example.org", switching: true)
        let known = try await known(house)
        let bob = try #require(try await house.view.subject)
        #expect(known?.identities(of: bob)?.map(\.provider) == ["email"])
        add(house, "i-1", "github", at: "2026-03-02T08:14:56Z")
        try await house.signIn(switching: true)
        #expect(told(house) == ["+github inferred"])
    }

    @Test func `of the user who was seen longest ago is forgotten first`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let alice = try #require(try await house.view.subject)
        // So many others have signed in since that one more would be too many.
        var users = try #require(try await known(house))
        for number in 1..<KnownUsers.most { users.remember([], of: "p\(number)") }
        await house.vault.put(users.text, in: try await people(house))
        try await signOut(house)
        try await house.signIn()
        users = try #require(try await known(house))
        users.remember([], of: "one more")
        #expect(users.identities(of: alice) != nil && users.identities(of: "p1") == nil)
    }

    private func people(_ house: SupabaseHouse) async throws -> VaultSlot {
        let account = try await house.broker.sessionManager.account(name)
        return VaultSlot(account: name.rawValue, binding: account.bindingID, kind: .people)
    }

    private func known(_ house: SupabaseHouse) async throws -> KnownUsers? {
        let entry = try await house.vault.load(try await people(house))
        return entry.flatMap { KnownUsers(decoding: $0.text) }
    }

    @Test func `stands in no sign-in's way: what cannot be read is nothing`() async throws {
        let house = try await SupabaseHouse()
        await house.vault.put(Secret("{}"), in: try await people(house))
        try await house.signIn()
        #expect(told(house) == [])
        let subject = try #require(try await house.view.subject)
        #expect(try await known(house)?.identities(of: subject)?.count == 1)
    }
}

@Suite struct `What is known of people` {
    private func identity(_ id: String) -> KnownIdentity { KnownIdentity(identityID: id, provider: "github") }

    @Test func `comes back from its text`() throws {
        var people = KnownUsers()
        people.remember([identity("a"), identity("b")], of: "alice")
        people.remember([], of: "bob")
        let read = try #require(KnownUsers(decoding: people.text))
        #expect(read == people)
        #expect(read.identities(of: "alice") == [identity("a"), identity("b")])
        #expect(read.identities(of: "bob") == [] && read.identities(of: "carol") == nil)
    }

    @Test func `has an end: who was not seen for longest is forgotten`() {
        var people = KnownUsers()
        for number in 0..<KnownUsers.most { people.remember([identity("i")], of: "p\(number)") }
        people.remember([identity("j")], of: "p0")
        people.remember([], of: "one more")
        #expect(people.identities(of: "p0") == [identity("j")])
        #expect(people.identities(of: "p1") == nil)
        #expect(people.identities(of: "p2") != nil)
    }

    @Test(arguments: ["", "{}", "[]", #"{"version":2,"people":[]}"#])
    func `of another version is not known`(text: String) { #expect(KnownUsers(decoding: Secret(text)) == nil) }
}
