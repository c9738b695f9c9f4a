import RingbackBase
import SupabaseSignIn
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(5))) struct `Passkeys on the socket` {
    private static let asked: JSON = [
        "challenge_id": .string(AgreeableSupabase.id(7)), "options": ["challenge": "YQ", "rpId": "app.example.org"],
        "expires_at": 4_000_000_000,
    ]
    private static let credential =
        #"{"id":"a2V5","type":"public-key","response":{"clientDataJSON":"e30","signature":"AA"}}"#
    private static let verify = "POST /passkeys/authentication/verify"

    private func asking(_ house: SupabaseHouse) async -> String {
        house.project.answer("POST /passkeys/authentication/options", 200, Self.asked)
        let flow = await house.ask("POST", "/sign-in", #"{"method":"passkey","captcha_token":"c"}"#)
        #expect(flow.status == 201)
        #expect(flow["waiting_for"] == "passkey" && flow["method"] == "passkey" && flow["status"] == "pending")
        #expect(flow["challenge_id"]?.string == AgreeableSupabase.id(7))
        #expect(flow["options"] == ["challenge": "YQ", "rpId": "app.example.org"])
        #expect(flow["authorization_url"] == nil && flow["redirect_uri"] == nil && flow["resend_after"] == nil)
        return flow["id"]?.string ?? ""
    }

    private func answer(_ id: String, _ body: String, _ house: SupabaseHouse) async -> APIHouse.Answer {
        await house.ask("POST", "/v1/flows/\(id)/verify", body)
    }

    @Test func `sign somebody in with what an authenticator answers`() async throws {
        let house = try await SupabaseHouse()
        let id = await asking(house)
        #expect(
            house.project.last("POST /passkeys/authentication/options")?.body
                == ["gotrue_meta_security": ["captcha_token": "c"]])
        // Whoever asks for the same joins it, and may answer it.
        let same = await house.ask("POST", "/sign-in", #"{"method":"passkey"}"#)
        #expect(same.status == 200 && same["id"]?.string == id)
        house.project.answer(Self.verify, 200, house.project.session())
        let flow = await answer(id, #"{"credential":\#(Self.credential)}"#, house)
        #expect(flow.status == 200 && flow["status"] == "completed" && flow["options"] == nil, "\(flow.text)")
        let body = try #require(house.project.last(Self.verify)?.body)
        #expect(body["challenge_id"]?.string == AgreeableSupabase.id(7))
        #expect(body["credential"] == (try JSON(parsing: Array(Self.credential.utf8))))
        #expect(await house.ask("GET", "")["state"] == "authenticated")
    }

    @Test(arguments: [
        "{}", #"{"code":"123456"}"#, #"{"credential":{}}"#, #"{"credential":"x"}"#, #"{"credential":{"id":"x"}}"#,
        #"{"credential":\#(credential),"code":"123456"}"#,
    ])
    func `are not spent on what is plainly no answer`(body: String) async throws {
        let house = try await SupabaseHouse()
        let id = await asking(house)
        let refused = await answer(id, body, house)
        #expect(["validation_failed", "state_conflict"].contains(refused.code), "\(refused.text)")
        #expect(house.project.last(Self.verify) == nil)
        #expect(await house.ask("GET", "/v1/flows/\(id)")["status"] == "pending")
    }

    @Test func `answer no flow that waits for a code`() async throws {
        let house = try await SupabaseHouse()
        let flow = await house.ask("POST", "/sign-in", #"{"method":"otp","email":"a@b.org"}"#)
        let refused = await answer(flow["id"]?.string ?? "", #"{"credential":\#(Self.credential)}"#, house)
        #expect(refused.code == "state_conflict")
        #expect(await answer("nothing", #"{"credential":\#(Self.credential)}"#, house).code == "flow_not_found")
    }

    @Test func `are not offered by every project`() async throws {
        let house = try await SupabaseHouse()
        house.project.refuse("POST /passkeys/authentication/options", 404, "passkey_disabled")
        let refused = await house.ask("POST", "/sign-in", #"{"method":"passkey"}"#)
        #expect(refused.code == "method_unsupported" && refused["recovery"] == "fix_configuration")
        for body in [#"{"method":"passkey","email":"a@b"}"#, #"{"method":"passkey","oauth_provider":"google"}"#] {
            #expect(await house.ask("POST", "/sign-in", body).code == "validation_failed")
        }
    }

    @Test func `are added, listed, named and removed`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let id = AgreeableSupabase.id(8)
        house.project.answer("POST /passkeys/registration/options", 200, Self.asked)
        let options = await house.ask("POST", "/passkey-options", "{}")
        #expect(options.json == Self.asked)
        house.project.answer(
            "POST /passkeys/registration/verify", 200, ["id": .string(id), "created_at": "2026-01-02T03:04:05Z"])
        let body = #"{"challenge_id":"\#(AgreeableSupabase.id(7))","credential":\#(Self.credential)}"#
        let added = await house.ask("POST", "/passkeys", body)
        #expect(added.status == 201 && added["id"]?.string == id && added["created_at"] == "2026-01-02T03:04:05Z")
        house.project.answer("GET /passkeys", 200, [["id": .string(id), "friendly_name": "Key"]])
        let list = await house.ask("GET", "/passkeys")
        #expect(list["passkeys"] == [["id": .string(id), "friendly_name": "Key"]])
        house.project.answer("PATCH /passkeys", 200, ["id": .string(id), "friendly_name": "Other"])
        let renamed = await house.ask("PATCH", "/passkeys/\(id)", #"{"friendly_name":"Other"}"#)
        #expect(renamed.status == 200 && renamed["friendly_name"] == "Other")
        #expect(house.project.last("PATCH /passkeys")?.body == ["friendly_name": "Other"])
        let removed = await house.ask("DELETE", "/passkeys/\(id)")
        #expect(removed.status == 200 && removed["removed"]?.string == id && removed["account"] == "app")
        #expect(house.project.last("DELETE /passkeys") != nil)
    }

    @Test(arguments: [
        ("POST", "/passkeys", "{}"), ("POST", "/passkeys", #"{"challenge_id":"x"}"#),
        ("POST", "/passkeys", #"{"challenge_id":"x","credential":\#(credential)}"#),
        ("PATCH", "/passkeys/\(AgreeableSupabase.id(8))", "{}"), ("PATCH", "/passkeys/x", #"{"friendly_name":"x"}"#),
        ("PATCH", "/passkeys/\(AgreeableSupabase.id(8))", #"{"friendly_name":""}"#), ("DELETE", "/passkeys/x", "{}"),
    ])
    func `with a wrong field are left alone`(method: String, path: String, body: String) async throws {
        let house = try await SupabaseHouse.signedIn()
        let before = house.project.requests.count
        #expect(await house.ask(method, path, body).code == "validation_failed")
        #expect(house.project.requests.count == before)
    }

    @Test(arguments: [
        (403, "insufficient_aal", "state_conflict"), (422, "too_many_passkeys", "state_conflict"),
        (422, "webauthn_credential_exists", "state_conflict"),
        (400, "webauthn_verification_failed", "invalid_credentials"),
        (400, "webauthn_challenge_expired", "flow_expired"), (404, "passkey_disabled", "method_unsupported"),
        (404, "validation_failed", "not_found"),
    ])
    func `are refused in the project's words`(status: Int, word: String, code: String) async throws {
        let house = try await SupabaseHouse.signedIn()
        house.project.refuse("POST /passkeys/registration/verify", status, word)
        let body = #"{"challenge_id":"\#(AgreeableSupabase.id(7))","credential":\#(Self.credential)}"#
        let refused = await house.ask("POST", "/passkeys", body)
        #expect(refused.code == code && refused["provider_code"]?.string == word)
        #expect(refused["user_message"]?.string?.contains("Sign in failed") != true)
    }

    @Test func `need a person, and a project`() async throws {
        let house = try await SupabaseHouse()
        #expect(await house.ask("GET", "/passkeys").code == "sign_in_required")
        #expect(await house.ask("GET", "/v1/accounts/work/passkeys").code == "method_unsupported")
    }
}
