import Cryptography
import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `A name that comes beside an ID token` {
    private func signIn(
        _ house: SupabaseHouse, _ fill: (inout SupabaseSignInFields) -> Void
    ) async throws(BrokerError) {
        try await house.begin("id_token") { fields in
            fields.oauthProvider = "apple"
            fields.idToken = Secret("\(SupabaseHouse.alice);\(Digest.hex(Digest.sha256("n")))")
            fields.nonce = Secret("n")
            fill(&fields)
        }
    }

    private let apple = JSONObject([.init("name", ["firstName": "Mira", "lastName": "Nordlys"])])

    @Test func `is written to a person who has none, and to nobody else`() async throws {
        let house = try await SupabaseHouse()
        try await signIn(house) { $0.appleUser = apple }
        #expect(
            try await house.view.user?["user_metadata"]
                == ["full_name": "Mira Nordlys", "given_name": "Mira", "family_name": "Nordlys"])
        #expect(try await house.view.user?["name"] == "Mira Nordlys")
        try await signIn(house) { $0.data = JSONObject([.init("full_name", "Somebody Else")]) }
        #expect(try await house.view.user?["name"] == "Mira Nordlys")
        #expect(house.project.count("PUT /user") == 1)
    }

    @Test func `may be said as a whole, and is nothing but a name`() async throws {
        let house = try await SupabaseHouse()
        for data in [JSONObject([.init("role", "admin")]), JSONObject([.init("full_name", 1)])] {
            guard case .invalid(field: "data", _) = await error({ try await signIn(house) { $0.data = data } })
            else { throw Unexpected() }
        }
        #expect(house.project.requests.isEmpty)
        try await signIn(house) { $0.data = JSONObject([.init("full_name", " Mira  N ")]) }
        #expect(try await house.view.user?["name"] == "Mira N")
    }

    @Test func `that cannot be written leaves the sign-in as it is, and is shown`() async throws {
        let house = try await SupabaseHouse()
        house.project.script("PUT /user", .status(503))
        try await signIn(house) { $0.appleUser = apple }
        #expect(try await house.view.state == .authenticated)
        #expect(try await house.view.error != nil)
    }
}
