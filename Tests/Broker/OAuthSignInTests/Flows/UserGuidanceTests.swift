import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(2))) struct `Which user a sign-in page is meant for` {
    private static let second = House.named("second")

    /// The parameters of a new sign-in's authorization request.
    private func query(
        _ house: House, _ name: AccountName = House.name, _ request: SignInRequest = SignInRequest()
    ) async throws -> [String: String] {
        let flow = try await house.broker.signIn(name, request).flow
        _ = try await house.broker.cancel(flow.id, isForAll: true)
        return try Self.query(flow.authorizationURL)
    }

    private static func query(_ url: String) throws -> [String: String] {
        let url = try WebURL(parsing: url)
        return Dictionary(try FormEncoding.parse(url.query ?? "").map { ($0.name, $0.value) }) { $1 }
    }

    /// alice is signed in to `work`, and `second` is at the same provider.
    private func house(
        promptValues: JSON? = nil, _ change: (inout Account) -> Void = { _ in }
    ) async throws -> House {
        let house = try await House()
        house.provider.behave { $0.metadata["prompt_values_supported"] = promptValues }
        var other = House.account(Self.second)
        change(&other)
        await house.broker.configure([House.account(), other])
        try await house.signIn()
        return house
    }

    @Test func `signing in again names the user who is signed in, on every page of the flow`() async throws {
        let house = try await house()
        #expect(try await query(house)["login_hint"] == "alice@example.org")
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        let pending = try #require(await house.broker.flowRegistry.entries[flow.id]?.flow)
        let provider = pending.account.provider(with: house.broker.tools)
        let another = try await provider.anotherPage(of: pending, in: house.broker.signInContext)
        let page = try #require(another?.authorizationURL)
        #expect(try Self.query(page)["login_hint"] == "alice@example.org" && page != flow.authorizationURL)
    }

    @Test func `the first sign-in of an account names nobody`() async throws {
        let house = try await House()
        let first = try await query(house)
        #expect(first["login_hint"] == nil && first["prompt"] == nil)
    }

    @Test func `login_hint = false, a stated hint and another user keep the name away`() async throws {
        let house = try await house()
        let stated = SignInRequest(parameters: [("login_hint", "bob")])
        #expect(try await query(house, House.name, stated)["login_hint"] == "bob")
        #expect(try await query(house, House.name, SignInRequest(switchesSubject: true))["login_hint"] == nil)
        var account = House.account()
        account.page.sendsLoginHint = false
        await house.broker.configure([account])
        #expect(try await query(house)["login_hint"] == nil)
    }

    @Test(
        arguments: [
            (nil, nil), (["login", "consent"], nil), (["select_account"], "select_account"),
        ] as [(JSON?, String?)])
    func `a second account of a provider asks for the choice of a user where that is known`(
        values: JSON?, prompt: String?
    ) async throws {
        let house = try await house(promptValues: values)
        #expect(try await query(house, Self.second)["prompt"] == prompt)
        // The account that is signed in keeps its user.
        #expect(try await query(house)["prompt"] == nil)
        #expect(try await query(house, House.name, SignInRequest(switchesSubject: true))["prompt"] == prompt)
    }

    @Test func `a preset knows the choice, and a configured prompt stays`() async throws {
        let preset = try await house { $0.provider = "google" }
        #expect(try await query(preset, Self.second)["prompt"] == "select_account")
        let stated = try await house(promptValues: ["select_account"]) {
            $0.authorizationParameters = [("prompt", "login")]
        }
        #expect(try await query(stated, Self.second)["prompt"] == "login")
    }

    @Test(
        arguments: [
            (["select_account"], "consent"), (["consent", "select_account"], "select_account consent"),
        ] as [(JSON, String)])
    func `consent for offline access is asked for too where both are announced`(
        values: JSON, prompt: String
    ) async throws {
        let house = try await house(promptValues: values) {
            $0.scopes = ["openid", "offline_access"]
            $0.oauth.asksConsentForOfflineAccess = true
        }
        #expect(try await query(house, Self.second)["prompt"] == prompt)
    }

    @Test func `two accounts of the same user name each other`() async throws {
        let house = try await house()
        #expect(try await house.broker.account(House.name).sameUser.isEmpty)
        try await house.signIn(Self.second)
        #expect(try await house.broker.account(House.name).sameUser == [Self.second])
        #expect(await house.broker.accounts().map(\.sameUser) == [[House.name], [Self.second]])
        try await house.signIn(Self.second, as: "bob", switching: true)
        #expect(try await house.broker.account(Self.second).sameUser.isEmpty)
    }
}
