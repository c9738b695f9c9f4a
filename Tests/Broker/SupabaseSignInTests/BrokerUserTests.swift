import RingbackBase
import SupabaseAuth
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `A user of a project` {
    private let name = SupabaseHouse.name

    private func update(
        _ house: SupabaseHouse, _ fill: (inout UserChanges) -> Void
    ) async throws(BrokerError) -> JSONObject {
        var changes = UserChanges()
        fill(&changes)
        return try await house.broker.supabase.update(name, changes).user
    }

    private func failure(_ house: SupabaseHouse, _ fill: (inout UserChanges) -> Void) async -> BrokerError? {
        await error { try await update(house, fill) }
    }

    @Test func `is asked for and kept`() async throws {
        let house = try await SupabaseHouse.signedIn()
        house.project.behave { server in
            let id = server.user(email: SupabaseHouse.alice)?.id ?? ""
            server.users[id]?.phone = "4915112345678"
        }
        #expect(try await house.broker.supabase.user(name)["phone"] == "+4915112345678")
        #expect(try await house.view.user?["phone"] == "+4915112345678")
        #expect(await house.vault.sessions.first?.user?["phone"] == "+4915112345678")
    }

    @Test func `changes its metadata member by member, and its address when it is confirmed`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let events = try await house.events {
            _ = try await update(house) { $0.data = JSONObject([.init("theme", "dark"), .init("size", 3)]) }
        }
        #expect(events == [.userUpdated])
        let user = try await update(house) { changes in
            changes.data = JSONObject([.init("theme", .null)])
            changes.email = try? EmailAddress(parsing: "New@Example.org")
        }
        #expect(user["user_metadata"] == ["size": 3])
        #expect(user["new_email"] == "new@example.org")
        #expect(user["email"]?.string == SupabaseHouse.alice)
        #expect(try await house.view.user == user)
        // Tokens are as they were: no refresh was needed.
        #expect(house.project.presented.isEmpty)
    }

    @Test func `that changes nothing sends no request`() async throws {
        let house = try await SupabaseHouse.signedIn()
        for fill in [{ _ in }, { $0.nonce = Secret("123456") }, { $0.password = Secret("abc") }]
            as [(inout UserChanges) -> Void]
        {
            #expect(await failure(house, fill) != nil)
        }
        #expect(house.project.count("PUT /user") == 0)
    }

    @Test func `with another password ends its other sessions`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let mine = house.session
        let now = house.clock.now
        house.project.behave { server in
            let id = server.user(email: SupabaseHouse.alice)?.id ?? ""
            _ = server.open(id, "password", at: now)
        }
        #expect(house.project.sessions.count == 2)
        let same = await failure(house) { $0.password = SupabaseHouse.secret }
        #expect(same?.word == "same_password")
        _ = try await update(house) { $0.password = Secret("another horse") }
        #expect(house.project.sessions == [mine])
        #expect(await house.refresh() == nil)
    }

    @Test func `with a second factor changes its password only at the second level`() async throws {
        let house = try await SupabaseHouse.signedIn()
        try await house.addFactor()
        try await house.signIn()
        let failure = await failure(house) { $0.password = Secret("another horse") }
        #expect(failure?.word == "insufficient_aal")
        #expect(try await house.view.state == .authenticated)
    }

    @Test func `is never shown the words of an error that repeat what was typed`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let body = #"{"code":"hook_says_no","message":"another horse is too easy"}"#
        house.project.script("PUT /user", .answer(400, body, [("X-Supabase-Api-Version", "2024-01-01")]))
        guard case .problem(let problem) = await failure(house, { $0.password = Secret("another horse") })
        else { throw Unexpected() }
        #expect(problem.providerCode == "hook_says_no")
        #expect(problem.providerMessage == nil)
        house.project.script("POST /token password", .answer(400, body, [("X-Supabase-Api-Version", "2024-01-01")]))
        let signIn = await house.problem("password") { fields in
            fields.email = SupabaseHouse.alice
            fields.password = Secret("another horse")
        }
        #expect(signIn?.providerMessage == nil)
    }

    @Test func `is sent the code that a change may need`() async throws {
        let house = try await SupabaseHouse.signedIn()
        try await house.broker.supabase.reauthenticate(name)
        #expect(house.project.count("GET /reauthenticate") == 1)
        _ = try await update(house) { changes in
            changes.password = Secret("another horse")
            changes.nonce = Secret("123456")
        }
        #expect(house.project.last("PUT /user")?.body["nonce"] == "123456")
    }

    @Test func `has factors with names of their own, and removes them`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let factor = try await house.addFactor()
        let again = await error {
            try await house.broker.supabase.enroll(name, NewFactor(.totp(issuer: nil), name: "app"))
        }
        #expect(again?.word == "mfa_factor_name_conflict")
        let phone = try await house.broker.supabase.enroll(
            name, NewFactor(.phone(try PhoneNumber(parsing: "+49 151 234")), name: "phone"))
        #expect(try await house.view.user?["factors"]?.array?.count == 2)
        _ = try await house.broker.supabase.challenge(name, factor: phone.id, channel: .whatsapp)
        #expect(house.project.last("POST /factors/challenge")?.body["channel"] == "whatsapp")
        // Its next token says that the session has fallen back.
        let view = try await house.broker.supabase.removeFactor(name, factor: factor)
        #expect(view.assurance == "aal1")
        #expect(view.nextAssurance == "aal1")
        #expect(house.project.presented.count == 1)
    }

    @Test func `has removed a factor even while nothing can be refreshed`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let factor = try await house.addFactor()
        house.project.script(FakeSupabase.refresh, .status(503))
        _ = try await house.broker.supabase.removeFactor(name, factor: factor)
        #expect(house.project.count("DELETE /factors") == 1)
    }

    @Test(arguments: ["", "..", "x/verify", "00000000-0000-4000-8000-00000000000g", "%2e%2e"])
    func `names factors and identities by UUIDs alone`(id: String) async throws {
        let house = try await SupabaseHouse.signedIn()
        for failure in [
            await error { try await house.broker.supabase.challenge(name, factor: id) },
            await error { try await house.broker.supabase.removeFactor(name, factor: id) },
            await error { try await house.broker.supabase.unlink(name, identity: id) },
            await error {
                try await house.broker.supabase.verifyFactor(name, factor: id, challenge: id, code: Secret("123456"))
            },
        ] {
            guard case .invalid = failure else { throw Unexpected() }
        }
        #expect(house.project.requests.count { $0.method != "GET" } == 1)
        #expect(await !house.vault.isAnnounced)
    }

    @Test func `calls the functions that are listed, and no other`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let value = try await house.broker.supabase.call(
            name, function: "touch", arguments: JSONObject([.init("a", [1])]))
        #expect(value["called"] == ["a": [1]])
        #expect(house.project.last("POST /rest/v1/rpc/touch")?.fields["apikey"] == "sb_publishable_x")
        for function in ["drop", "", "touch/../x", "Touch"] {
            guard
                case .invalid(field: "function", _) = await error({
                    try await house.broker.supabase.call(name, function: function, arguments: JSONObject())
                })
            else { throw Unexpected() }
        }
        #expect(house.project.requests.count { $0.path.hasPrefix("/rest") } == 1)
    }

    @Test func `calls the Edge Functions that are listed, and no other`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let value = try await house.broker.supabase.invoke(name, function: "send-invoice", arguments: ["a": [1]])
        #expect(value["called"] == ["a": [1]])
        #expect(house.project.last("POST /functions/v1/send-invoice")?.fields["apikey"] == "sb_publishable_x")
        for function in ["touch", "", "send-invoice/7", "Send-Invoice"] {
            guard
                case .invalid(field: "function", _) = await error({
                    try await house.broker.supabase.invoke(name, function: function, arguments: [:])
                })
            else { throw Unexpected() }
        }
        #expect(house.project.requests.count { $0.path.hasPrefix("/functions") } == 1)
    }
}
