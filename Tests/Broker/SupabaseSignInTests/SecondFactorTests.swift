import RingbackBase
import SessionVault
import SupabaseAuth
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `A second factor that an authenticator proves` {
    private static let proof = "POST /factors/verify"
    private let name = SupabaseHouse.name

    private func credential(_ member: String) -> JSONObject {
        let response = JSONObject([.init("clientDataJSON", "e30"), .init(member, "AA")])
        return JSONObject([.init("id", "a2V5"), .init("response", .object(response))])
    }

    private func signedIn(reuseInterval: Int = 0) async throws -> SupabaseHouse {
        let house = try await SupabaseHouse()
        house.project.behave { $0.reuseInterval = reuseInterval }
        try await house.signIn()
        return house
    }

    private func enrolled(_ house: SupabaseHouse) async throws -> String {
        try await house.broker.supabase.enroll(name, NewFactor(.webAuthn, name: "key")).id
    }

    @discardableResult
    private func prove(
        _ house: SupabaseHouse, _ factor: String, _ member: String, party: RelyingParty? = nil
    ) async throws(BrokerError) -> AccountView {
        let challenge = try await house.broker.supabase.challenge(name, factor: factor, party: party)
        return try await house.broker.supabase.verifyFactor(
            name, factor: factor, challenge: challenge.id, credential: credential(member), party: party)
    }

    @Test func `raises the session, whose new refresh token is the one that is presented next`() async throws {
        let house = try await signedIn()
        let id = house.session
        let factor = try await enrolled(house)
        let asked = try await house.broker.supabase.challenge(name, factor: factor)
        #expect(asked.webAuthn?.ceremony == .create && asked.webAuthn?.options["challenge"] == "YQ")
        let events = try await house.events { try await prove(house, factor, "attestationObject") }
        #expect(events.contains(.mfaChallengeVerified))
        #expect(try await house.view.assurance == "aal2")
        #expect(house.project.last(Self.proof)?.body["webauthn"]?["type"] == "create")
        let current = house.project.behave { $0.current(id) }
        #expect(try await house.refreshTokens == [current])
        // The second time the key is used, not made.
        #expect(try await house.broker.supabase.challenge(name, factor: factor).webAuthn?.ceremony == .request)
        try await prove(house, factor, "signature")
        #expect(await house.refresh() == nil)
        #expect(house.project.sessions == [id])
        let view = try await house.broker.supabase.removeFactor(name, factor: factor)
        #expect(view.assurance == "aal1" && view.nextAssurance == "aal1")
    }

    @Test func `tells an older server whom the credential is for`() async throws {
        let house = try await signedIn()
        let factor = try await enrolled(house)
        let party = try RelyingParty(id: "app.example.org", origins: ["https://app.example.org"])
        try await prove(house, factor, "attestationObject", party: party)
        for kind in ["POST /factors/challenge", Self.proof] {
            let member = house.project.last(kind)?.body["webauthn"]
            #expect(member?["rpId"] == "app.example.org" && member?["rpOrigins"] == ["https://app.example.org"])
        }
    }

    @Test func `neither a verification nor a refresh is sent once the lease is over`() async throws {
        let house = try await signedIn()
        let factor = try await enrolled(house)
        await house.vault.endLease(afterRequests: 0)
        let over = BrokerError.vaultUnreachable(.vault(.unreachable(.leaseOver)))
        let failure = await error { try await prove(house, factor, "attestationObject") }
        #expect(failure == over)
        #expect(house.project.last(Self.proof) == nil)
        let presented = house.project.presented
        #expect(await house.refresh() == over)
        #expect(house.project.presented == presented)
    }

    @Test func `that is not believed leaves the session as it was, after a refresh that makes sure`() async throws {
        let house = try await signedIn(reuseInterval: 10)
        let factor = try await enrolled(house)
        let failure = await error { try await prove(house, factor, "signature") }
        guard case .problem(let problem) = failure else { throw Unexpected() }
        #expect(problem.code == "provider_error" && problem.providerMessage == "No." && problem.isTrouble)
        // HTTP 500 does not say that nothing was done.
        _ = await house.broker.sessionManager.runDueTasks()
        #expect(await house.project.arrived(FakeSupabase.refresh))
        #expect(await eventually { await house.broker.sessionManager.isIdle })
        let view = try await house.view
        #expect(view.state == .authenticated && view.assurance == "aal1")
        try await prove(house, factor, "attestationObject")
        #expect(try await house.view.assurance == "aal2")
    }

    @Test func `is asked about only with what may be an answer`() async throws {
        let house = try await signedIn()
        let factor = try await enrolled(house)
        let challenge = try await house.broker.supabase.challenge(name, factor: factor).id
        let documents = [JSONObject(), JSONObject([.init("id", "a2V5")]), credential("userHandle")]
        for document in documents {
            let failure = await error {
                try await house.broker.supabase.verifyFactor(
                    name, factor: factor, challenge: challenge, credential: document)
            }
            guard case .invalid("credential", _) = failure else { throw Unexpected() }
        }
        #expect(house.project.count(Self.proof) == 0)
    }
}
