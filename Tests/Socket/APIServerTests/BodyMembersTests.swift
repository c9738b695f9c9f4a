import BrokerCore
import RingbackAPI
import RingbackBase
import SupabaseSignIn
import Testing

@testable import APIServer
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `The members of a request's body` {
    private static let flow = "/v1/flows/x"

    /// What may be said, by route; whether it leads anywhere is another matter.
    static let bodies: [(String, String, String)] = [
        (
            "POST", "/sign-in",
            #"{"method":"sign_up","timeout":9,"switch_subject":true,"email":"a@b.org","password":"longer","#
                + #""password_confirmation":"longer","data":{},"captcha_token":"x","persist":false}"#
        ),
        (
            "POST", "/sign-in",
            #"{"oauth_provider":"x","scopes":"a","params":{},"provider_token":true,"callback_port":1}"#
        ),
        ("POST", "/sign-in", #"{"method":"otp","phone":"+4915112","channel":"sms","create_user":false}"#),
        ("POST", "/sign-in", #"{"method":"id_token","id_token":"x","nonce":"n","access_token":"x","user":{}}"#),
        ("POST", "/sign-in", #"{"method":"id_token","from_account":"work"}"#),
        ("POST", "/sign-in", #"{"method":"sso","domain":"x","provider_id":"y"}"#),
        ("POST", "/sign-in", #"{"method":"session","access_token":"x","refresh_token":"y"}"#),
        ("PATCH", "/user", #"{"email":"a@b.org","phone":"+4915112","channel":"sms","data":{}}"#),
        (
            "PATCH", "/user",
            #"{"password":"longer","password_confirmation":"longer","current_password":"x","nonce":"1"}"#
        ),
        ("POST", "/factors", #"{"factor_type":"phone","friendly_name":"x","phone":"+4915112"}"#),
        ("POST", "/factors", #"{"factor_type":"totp","issuer":"x"}"#),
        ("POST", "/factors", #"{"factor_type":"webauthn","friendly_name":"x"}"#),
        ("POST", "/factors/x/challenge", #"{"channel":"sms"}"#),
        ("POST", "/factors/x/challenge", #"{"rp_id":"x","rp_origins":["y"]}"#),
        ("POST", "/factors/x/verify", #"{"credential":{},"challenge_id":"x","rp_id":"x","rp_origins":["y"]}"#),
        ("POST", "/factors/x/verify", #"{"code":"123456","challenge_id":"x"}"#),
        ("POST", "/identities", #"{"oauth_provider":"x","scopes":"a","params":{},"timeout":9}"#),
        ("POST", "/password-reset", #"{"email":"a@b.org","captcha_token":"x"}"#),
        ("POST", "/migration", #"{"from":"x"}"#),
        ("POST", "/refresh", #"{"force":true}"#),
        ("POST", "/rpc/touch", #"{"anything":1,"password":null}"#),
        ("POST", "\(flow)/verify", #"{"code":"123456","token_hash":null,"email":"a@b.org","phone":null,"type":null}"#),
        ("POST", "\(flow)/resend", #"{"captcha_token":"x"}"#),
        ("POST", "/v1/callbacks", #"{"url":"x","notify":false}"#),
        ("POST", "/v1/vault/unlock", #"{"passphrase":"x"}"#),
        ("POST", "/v1/vault/rekey", #"{"key_source":"x","passphrase":"x"}"#),
        ("POST", "/v1/vault/join", #"{"password":"x","name":"x"}"#),
        ("POST", "/v1/vault/hosts", #"{"lasting":60}"#),
        ("POST", "/v1/vault/share", #"{"code":"x"}"#),
        ("POST", "/v1/reload", "{}"),
    ]

    @Test(arguments: bodies.indices) func `are taken where the description has them`(index: Int) async throws {
        let (method, target, body) = Self.bodies[index]
        let answer = await (try await SupabaseHouse()).ask(method, target, body)
        #expect(answer["detail"]?.string?.contains("no such member") != true, "\(answer.text)")
    }

    @Test func `are described for every method of signing in`() throws {
        let described = Set(try #require(Router.shared[.signIn]?.bodyMembers))
        #expect(Call.allProjectFields.subtracting(described).isEmpty)
        let changes = try #require(Router.shared[.updateUser]?.bodyMembers)
        #expect(changes.contains("password_confirmation"))
    }

    @Test func `are closed in the description, but for a function's arguments`() throws {
        let document = OpenAPIDocument.document(version: APIHouse.version)
        for endpoint in Endpoint.allCases {
            let body = document["paths"]?[endpoint.path]?[endpoint.method.rawValue.lowercased()]?["requestBody"]
            guard let schema = body?["content"]?["application/json"]?["schema"] else { continue }
            let isOpen = endpoint == .callFunction
            #expect((schema["additionalProperties"] == false) == !isOpen, "\(endpoint.path)")
        }
    }

    @Test(arguments: [
        (
            "PATCH", "/user", #"{"pasword":"longer"}"#,
            "pasword: this request has no such member; did you mean password?"
        ),
        ("PATCH", "/user", #"{"zzzzzzzz":null}"#, "zzzzzzzz: this request has no such member. It has: channel, "),
        ("POST", "/reauthenticate", #"{"nonce":"1"}"#, "nonce: this request has no such member. It has none."),
        ("POST", "/refresh", #"{"fource":true}"#, "fource: this request has no such member; did you mean force?"),
    ])
    func `that nobody reads are refused by name`(method: String, target: String, body: String, words: String)
        async throws
    {
        let house = try await SupabaseHouse()
        let answer = await house.ask(method, target, body)
        #expect(answer.status == 400 && answer.code == "validation_failed")
        #expect(answer["detail"]?.string?.hasPrefix(words) == true, "\(answer.text)")
        #expect(house.project.requests.isEmpty)
    }

    @Test func `say a new password twice in the same way, or not at all`() async throws {
        let house = try await SupabaseHouse.signedIn()
        for body in [
            #"{"password":"longer","password_confirmation":"Longer"}"#, #"{"password_confirmation":"longer"}"#,
            #"{"password":"longer","password_confirmation":""}"#, #"{"password":"longer","password_confirmation":1}"#,
        ] {
            let answer = await house.ask("PATCH", "/user", body)
            #expect(answer.code == "validation_failed")
            #expect(answer["detail"]?.string?.hasPrefix("password_confirmation: ") == true, "\(answer.text)")
        }
        #expect(house.project.last("PUT /user") == nil)
        let body = #"{"password":"longer","password_confirmation":"longer"}"#
        #expect(await house.ask("PATCH", "/user", body).status == 200)
        #expect(house.project.last("PUT /user")?.body == ["password": "longer"])
    }
}
