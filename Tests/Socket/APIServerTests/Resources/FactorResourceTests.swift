import RingbackBase
import SupabaseSignIn
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(5))) struct `Second factors on the socket` {
    private let totp = "/factors/\(AgreeableSupabase.id(3))"
    private let phone = "/factors/\(AgreeableSupabase.id(4))"

    @Test func `are listed, added and removed`() async throws {
        let house = try await SupabaseHouse.signedIn()
        #expect(await house.ask("GET", "/factors")["factors"]?.array?.count == 2)
        let added = await house.ask("POST", "/factors", #"{"friendly_name":"app","issuer":"App"}"#)
        #expect(added.status == 201)
        #expect(added["totp"] == ["uri": "otpauth://totp/x", "secret": "ABC", "qr_code": "<svg/>"])
        #expect(
            house.project.last("POST /factors")?.body
                == ["factor_type": "totp", "issuer": "App", "friendly_name": "app"])
        house.project.answer(
            "POST /factors", 200, ["id": .string(AgreeableSupabase.id(6)), "type": "phone", "phone": "4915112"])
        let number = await house.ask("POST", "/factors", #"{"factor_type":"phone","phone":"+49 15112"}"#)
        #expect(number["phone"] == "+4915112")
        #expect(number["totp"] == nil)
        #expect(await house.ask("DELETE", totp)["state"] == "authenticated")
        #expect(house.project.last("POST /token refresh_token") != nil)
    }

    @Test(arguments: [
        #"{"factor_type":"sms"}"#, #"{"factor_type":"phone"}"#, #"{"factor_type":"phone","phone":"x"}"#,
        #"{"factor_type":1}"#, #"{"friendly_name":1}"#,
    ])
    func `with a wrong field are not added`(body: String) async throws {
        let house = try await SupabaseHouse.signedIn()
        #expect(await house.ask("POST", "/factors", body).code == "validation_failed")
        #expect(house.project.last("POST /factors") == nil)
    }

    @Test func `of an authenticator are proved with or without a challenge of one's own`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let challenge = await house.ask("POST", "\(totp)/challenge", "{}")
        #expect(challenge["id"]?.string == AgreeableSupabase.id(7))
        #expect(challenge["factor"]?.string == AgreeableSupabase.id(3))
        #expect(challenge["expires_at"] == 1_800_000_300)
        let body = #"{"code":"123456","challenge_id":"\#(AgreeableSupabase.id(7))"}"#
        #expect(await house.ask("POST", "\(totp)/verify", body)["state"] == "authenticated")
        #expect(house.project.requests.count { $0.kind == "POST /factors/challenge" } == 1)
        #expect(await house.ask("POST", "\(totp)/verify", #"{"code":"123 456"}"#).status == 200)
        #expect(house.project.requests.count { $0.kind == "POST /factors/challenge" } == 2)
    }

    @Test func `of a phone are proved with the challenge that sent the code`() async throws {
        let house = try await SupabaseHouse.signedIn()
        await house.ask("POST", "\(phone)/challenge", #"{"channel":"whatsapp"}"#)
        #expect(house.project.last("POST /factors/challenge")?.body == ["channel": "whatsapp"])
        #expect(await house.ask("POST", "\(phone)/challenge", #"{"channel":"pigeon"}"#).code == "validation_failed")
        let answer = await house.ask("POST", "\(phone)/verify", #"{"code":"123456"}"#)
        #expect(answer.code == "validation_failed")
        #expect(answer["detail"]?.string?.hasPrefix("challenge_id") == true)
        #expect(house.project.requests.count { $0.kind == "POST /factors/challenge" } == 1)
        let body = #"{"code":"123456","challenge_id":"\#(AgreeableSupabase.id(7))"}"#
        #expect(await house.ask("POST", "\(phone)/verify", body).status == 200)
    }

    @Test(arguments: ["{}", #"{"code":"12"}"#, #"{"code":123456}"#, #"{"code":"123456","challenge_id":"x"}"#])
    func `with a wrong proof change nothing`(body: String) async throws {
        let house = try await SupabaseHouse.signedIn()
        #expect(await house.ask("POST", "\(totp)/verify", body).code == "validation_failed")
        #expect(house.project.last("POST /factors/verify") == nil)
        for tail in ["/factors/x", "/factors/%2e%2e"] {
            #expect(await house.ask("DELETE", tail).code == "validation_failed")
        }
    }

    private static let options: JSON = ["challenge": "YQ", "rpId": "app.example.org"]
    private static let credential =
        #"{"id":"a2V5","type":"public-key","response":{"clientDataJSON":"e30","signature":"AA"}}"#

    @Test func `of an authenticator are added, asked and proved in three steps`() async throws {
        let house = try await SupabaseHouse.signedIn()
        house.project.answer(
            "POST /factors", 200, ["id": .string(AgreeableSupabase.id(6)), "type": "webauthn", "friendly_name": "key"])
        let added = await house.ask("POST", "/factors", #"{"factor_type":"webauthn","friendly_name":"key"}"#)
        #expect(added.status == 201 && added["factor_type"] == "webauthn" && added["totp"] == nil, "\(added.text)")
        #expect(house.project.last("POST /factors")?.body == ["factor_type": "webauthn", "friendly_name": "key"])
        house.project.answer(
            "POST /factors/challenge", 200,
            [
                "id": .string(AgreeableSupabase.id(7)), "type": "webauthn", "expires_at": 1_800_000_300,
                "webauthn": ["type": "request", "credential_options": ["publicKey": Self.options]],
            ])
        let key = "/factors/\(AgreeableSupabase.id(6))"
        let party = #""rp_id":"app.example.org","rp_origins":["https://app.example.org"]"#
        let challenge = await house.ask("POST", "\(key)/challenge", "{\(party)}")
        #expect(challenge["id"]?.string == AgreeableSupabase.id(7), "\(challenge.text)")
        #expect(challenge["webauthn"] == ["type": "request", "options": Self.options])
        let wire: JSON = ["rpId": "app.example.org", "rpOrigins": ["https://app.example.org"]]
        #expect(house.project.last("POST /factors/challenge")?.body["webauthn"] == wire)
        let body = #"{"challenge_id":"\#(AgreeableSupabase.id(7))","credential":\#(Self.credential)}"#
        let verified = await house.ask("POST", "\(key)/verify", body)
        #expect(verified.status == 200 && verified["state"] == "authenticated", "\(verified.text)")
        let sent = try #require(house.project.last("POST /factors/verify")?.body)
        #expect(sent["webauthn"]?["type"] == "request" && sent["code"] == nil)
        #expect(sent["webauthn"]?["credential_response"] == (try JSON(parsing: Array(Self.credential.utf8))))
    }

    @Test(arguments: [
        #"{"credential":{}}"#, #"{"credential":"x","challenge_id":"7"}"#, #"{"credential":{},"challenge_id":"7"}"#,
        #"{"credential":{"id":"k","response":{"clientDataJSON":"e30"}},"challenge_id":"7"}"#,
        #"{"credential":{},"code":"123456","challenge_id":"7"}"#,
        #"{"credential":{},"challenge_id":"7","rp_id":"app.example.org"}"#,
        #"{"credential":{},"challenge_id":"7","rp_origins":["https://app.example.org"]}"#,
        #"{"credential":{},"challenge_id":"7","rp_id":"app.example.org","rp_origins":[1]}"#,
    ])
    func `with no credential are not proved`(body: String) async throws {
        let house = try await SupabaseHouse.signedIn()
        let body = body.replacing("\"7\"", with: "\"\(AgreeableSupabase.id(7))\"")
        let answer = await house.ask("POST", "\(totp)/verify", body)
        #expect(answer.code == "validation_failed", "\(answer.text)")
        #expect(house.project.last("POST /factors/verify") == nil)
    }

    @Test func `of an authenticator have no code`() async throws {
        let house = try await SupabaseHouse.signedIn()
        house.project.answer(
            "GET /user", 200,
            [
                "id": .string(AgreeableSupabase.id(1)), "email": "alice@example.org",
                "factors": [["id": .string(AgreeableSupabase.id(3)), "factor_type": "webauthn", "status": "verified"]],
            ])
        #expect(await house.ask("GET", "/factors")["factors"]?.array?.first?["factor_type"] == "webauthn")
        let answer = await house.ask("POST", "\(totp)/verify", #"{"code":"123456"}"#)
        #expect(answer.code == "validation_failed")
        #expect(answer["detail"]?.string?.hasPrefix("credential") == true, "\(answer.text)")
        #expect(house.project.last("POST /factors/challenge") == nil)
    }

    @Test func `with a wrong code say so to the person`() async throws {
        let house = try await SupabaseHouse.signedIn()
        house.project.refuse("POST /factors/verify", 422, "mfa_verification_failed")
        let answer = await house.ask("POST", "\(totp)/verify", #"{"code":"123456"}"#)
        #expect(answer.code == "invalid_credentials")
        #expect(answer["user_message"] == "Invalid code. Please try again.")
        #expect(await house.ask("GET", "")["aal"] == "aal1")
    }
}
