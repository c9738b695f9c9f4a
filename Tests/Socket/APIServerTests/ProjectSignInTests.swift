import LocalHTTP
import RingbackBase
import SupabaseAuth
import SupabaseSignIn
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(5))) struct `Signing in at a project on the socket` {
    /// A body, what it asks the project, and the status of the answer.
    static let ways: [(body: String, kind: String, status: Int)] = [
        (#"{"method":"browser","oauth_provider":"apple","scopes":"name"}"#, "GET /authorize", 201),
        (#"{"params":{"prompt":"login"},"provider_token":true,"persist":false}"#, "GET /authorize", 201),
        (#"{"method":"password","email":"a@b.org","password":"correct horse"}"#, "POST /token password", 200),
        (
            #"{"method":"password","phone":"+4915112","password":"correct horse","captcha_token":"c"}"#,
            "POST /token password", 200
        ),
        (#"{"method":"sign_up","email":"a@b.org","password":"correct horse","data":{"a":1}}"#, "POST /signup", 200),
        (#"{"method":"otp","phone":"+4915112","channel":"sms","create_user":false}"#, "POST /otp", 201),
        (#"{"method":"otp","email":"a@b.org","data":{}}"#, "POST /otp", 201),
        (#"{"method":"magic_link","email":"a@b.org"}"#, "POST /otp", 201),
        (
            #"{"method":"id_token","oauth_provider":"google","id_token":"x","nonce":"n","access_token":"y"}"#,
            "POST /token id_token", 200
        ),
        (
            #"{"method":"id_token","oauth_provider":"apple","id_token":"x","nonce":"n","data":{"full_name":"A B"}}"#,
            "PUT /user", 200
        ),
        (
            #"{"method":"id_token","oauth_provider":"apple","id_token":"x","nonce":"n","user":{"name":{"firstName":"A"}}}"#,
            "PUT /user", 200
        ),
        (#"{"method":"anonymous","captcha_token":"c"}"#, "POST /signup", 200),
        (#"{"method":"sso","domain":"b.org"}"#, "POST /sso", 201),
        (#"{"method":"session","access_token":"TOKEN","refresh_token":"r"}"#, "POST /token refresh_token", 200),
    ]

    @Test(arguments: ways.indices)
    func `every way in asks the project for it`(index: Int) async throws {
        let house = try await SupabaseHouse()
        let way = `Signing in at a project on the socket`.ways[index]
        // Another program's session, whose token the server knows.
        let token =
            await house.signIn().status == 200
            ? await house.ask("GET", "/session")["access_token"]?.string ?? "" : ""
        await house.ask("DELETE", "/session")
        let answer = await house.ask("POST", "/sign-in", way.body.replacing("TOKEN", with: token))
        #expect(answer.status == way.status)
        #expect(house.project.requests.contains { $0.kind == way.kind })
        if way.status == 200 {
            #expect(answer["state"] == "authenticated")
            #expect(answer["aal"] == "aal1")
            #expect(answer["next_aal"] == "aal2")
        } else {
            #expect(answer["status"] == "pending")
        }
    }

    @Test func `its fields reach the project`() async throws {
        let house = try await SupabaseHouse()
        await house.ask(
            "POST", "/sign-in",
            #"{"method":"sign_up","email":" A@B.org","password":"correct horse","data":{"a":1},"captcha_token":"c"}"#)
        let body = try #require(house.project.last("POST /signup")?.body)
        #expect(body["email"] == "a@b.org")
        #expect(body["data"] == ["a": 1])
        #expect(body["gotrue_meta_security"] == ["captcha_token": "c"])
        await house.ask("POST", "/sign-in", #"{"scopes":"x  y","params":{"hd":"b.org"}}"#)
        let query = try #require(house.project.last("GET /authorize")?.query)
        #expect(query["scopes"] == "x y")
        #expect(query["hd"] == "b.org")
        #expect(query["redirect_to"]?.hasPrefix("http://127.0.0.1:4711/callback/app/") == true)
    }

    static let samples: [String: String] = [
        "data": "{}", "user": "{}", "params": "{}", "persist": "false", "create_user": "true", "provider_token": "true",
    ]

    @Test(arguments: SupabaseMethod.ofSignIn + [.link])
    func `a field of another method is refused by name`(_ way: SupabaseMethod) async throws {
        let house = try await SupabaseHouse()
        let method = way.rawValue
        let strangers = Call.allProjectFields.subtracting(way.fields)
        #expect(!strangers.isEmpty)
        for field in strangers {
            let value = `Signing in at a project on the socket`.samples[field] ?? "\"x\""
            let isLink = way == .link
            let body = isLink ? #"{"\#(field)":\#(value)}"# : #"{"method":"\#(method)","\#(field)":\#(value)}"#
            let answer = await house.ask("POST", isLink ? "/identities" : "/sign-in", body)
            #expect(answer.code == "validation_failed", "\(method) \(field)")
            #expect(answer["detail"]?.string?.hasPrefix("\(field):") == true)
        }
        #expect(house.project.requests.isEmpty)
    }

    @Test func `an account at an OpenID provider has none of these fields and ways`() async throws {
        let house = try await SupabaseHouse()
        for field in Call.allProjectFields.subtracting(["scopes", "params"]) {
            let value = `Signing in at a project on the socket`.samples[field] ?? "\"x\""
            let answer = await house.ask("POST", "/v1/accounts/work/sign-in", #"{"\#(field)":\#(value)}"#)
            #expect(answer.code == "validation_failed")
        }
        let answer = await house.ask("POST", "/v1/accounts/work/sign-in", #"{"method":"password"}"#)
        #expect(answer.code == "method_unsupported")
    }

    @Test(arguments: ["device", "recovery", "link", "Password", ""])
    func `a way that there is not is said with those that there are`(method: String) async throws {
        let answer = try await SupabaseHouse().ask("POST", "/sign-in", #"{"method":"\#(method)"}"#)
        #expect(answer.code == "method_unsupported")
        #expect(answer["detail"]?.string?.contains("magic_link") == true)
    }

    @Test(arguments: [
        #"{"email":1,"method":"password"}"#, #"{"password":"","method":"password"}"#,
        #"{"password":["x"],"method":"password"}"#, #"{"persist":"no"}"#, #"{"data":[],"method":"anonymous"}"#,
        #"{"create_user":1,"method":"otp"}"#, #"{"provider_token":"yes"}"#, #"{"params":{"redirect_to":"x"}}"#,
        #"{"params":{"code_challenge":"x"}}"#, #"{"oauth_provider":"a b"}"#, #"{"nonce":"","method":"id_token"}"#,
        #"{"domain":"..","method":"sso"}"#, #"{"provider_id":"x","method":"sso"}"#,
        #"{"access_token":"x","method":"session"}"#,
    ])
    func `a wrong field is named`(body: String) async throws {
        let house = try await SupabaseHouse()
        let answer = await house.ask("POST", "/sign-in", body)
        #expect(answer.code == "validation_failed")
        #expect(house.project.requests.isEmpty)
        #expect(await house.ask("GET", "/v1/flows").text == #"{"flows":[]}"#)
    }

    @Test func `what a person mistyped is told to the person`() async throws {
        let house = try await SupabaseHouse()
        for (body, message) in [
            (#"{"method":"otp","email":"nobody"}"#, UserMessage.invalidEmail),
            (#"{"method":"otp","phone":"0151 234"}"#, .invalidPhone),
        ] {
            #expect(await house.ask("POST", "/sign-in", body)["user_message"]?.string == message.text(in: .english))
            let russian = await house.ask("POST", "/sign-in", body, fields: [("Accept-Language", "ru")])
            #expect(russian["user_message"]?.string == message.text(in: .russian))
            #expect(russian["detail"]?.string?.isEmpty == false)
        }
        let short = await house.ask("POST", "/sign-in", #"{"method":"sign_up","email":"a@b.org","password":"abc"}"#)
        #expect(short.code == "weak_password")
        #expect(short["reasons"] == ["length"])
    }

    @Test func `a sign-up waits for its confirmation, and says so to the person`() async throws {
        let house = try await SupabaseHouse()
        house.project.answer(
            "POST /signup", 200,
            [
                "id": .string(AgreeableSupabase.id(1)), "role": "authenticated",
                "identities": [["identity_id": "y", "provider": "email"]],
            ])
        let body = #"{"method":"sign_up","email":"a@b.org","password":"correct horse"}"#
        let flow = await house.ask("POST", "/sign-in", body)
        #expect(flow.status == 201)
        #expect(flow["waiting_for"] == "email_confirmation")
        #expect(flow["user_message"] == "Check your email.")
        #expect(flow["authorization_url"] == nil)
        let id = flow["id"]?.string ?? ""
        let russian = await house.ask("GET", "/v1/flows/\(id)", fields: [("Accept-Language", "ru")])
        #expect(russian["user_message"]?.string == UserMessage.checkEmail.text(in: .russian))
    }

    @Test func `a code is verified, sent again and counted`() async throws {
        let house = try await SupabaseHouse()
        let flow = await house.ask("POST", "/sign-in", #"{"method":"otp","email":"a@b.org"}"#)
        let id = flow["id"]?.string ?? ""
        #expect(flow["waiting_for"] == "code")
        #expect(flow["resend_after"]?.integer == house.house.clock.now + 60)
        #expect(flow["redirect_uri"] == nil)
        let early = await house.ask("POST", "/v1/flows/\(id)/resend", "{}")
        #expect(early.status == 429)
        #expect(early["retry_after"] == 60)
        #expect(early.response.fields["Retry-After"] == "60")
        house.house.clock.advance(by: 60)
        let again = await house.ask("POST", "/v1/flows/\(id)/resend", #"{"captcha_token":"c"}"#)
        #expect(again.status == 200)
        #expect(again["resend_after"]?.integer == house.house.clock.now + 60)

        house.project.refuse("POST /verify", 403, "otp_expired")
        let wrong = await house.ask("POST", "/v1/flows/\(id)/verify", #"{"code":"000000"}"#)
        #expect(wrong.code == "invalid_credentials")
        #expect(wrong["user_message"] == "Invalid code. Please try again.")
        for body in ["{}", #"{"code":"12"}"#, #"{"code":"123456","token_hash":"x"}"#, #"{"code":123456}"#] {
            let answer = await house.ask("POST", "/v1/flows/\(id)/verify", body)
            #expect(answer.code == "validation_failed")
        }
        let done = await house.ask("POST", "/v1/flows/\(id)/verify", #"{"code":"123 456"}"#)
        #expect(done["status"] == "completed")
        #expect(await house.ask("POST", "/v1/flows/\(id)/verify", #"{"code":"123456"}"#).status == 410)
        #expect(await house.ask("POST", "/v1/flows/nothing/verify", #"{"code":"123456"}"#).code == "flow_not_found")
        #expect(await house.ask("POST", "/v1/flows/nothing/resend", "{}").code == "flow_not_found")
    }
}
