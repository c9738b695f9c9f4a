import RingbackBase
import SupabaseAuth
import SupabaseSignIn
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(5))) struct `A user on the socket` {
    static let routes: [(String, String, String?)] = [
        ("GET", "/user", nil), ("PATCH", "/user", #"{"data":{"a":1}}"#), ("PATCH", "/user", #"{"phone":"+4915112"}"#),
        ("GET", "/identities", nil),
        ("POST", "/identities", #"{"oauth_provider":"apple"}"#),
        ("DELETE", "/identities/\(AgreeableSupabase.id(5))", nil),
        ("DELETE", "/oauth-consents/\(AgreeableSupabase.id(8))", nil),
        ("GET", "/factors", nil), ("POST", "/factors", "{}"),
        ("POST", "/factors/\(AgreeableSupabase.id(3))/challenge", "{}"),
        ("POST", "/factors/\(AgreeableSupabase.id(3))/verify", #"{"code":"123456"}"#),
        ("DELETE", "/factors/\(AgreeableSupabase.id(3))", nil), ("POST", "/reauthenticate", nil),
        ("POST", "/rpc/touch", "{}"), ("POST", "/functions/send-invoice", "{}"),
    ]

    @Test(arguments: routes.indices)
    func `is there while somebody is signed in at a project`(index: Int) async throws {
        let (method, tail, body) = `A user on the socket`.routes[index]
        let house = try await SupabaseHouse()
        #expect(await house.ask(method, tail, body).code == "sign_in_required")
        #expect(await house.ask(method, "/v1/accounts/work\(tail)", body).code == "method_unsupported")
        #expect(await house.ask(method, "/v1/accounts/nobody\(tail)", body).code == "account_not_found")
        #expect(house.project.requests.isEmpty)
        await house.signIn()
        #expect(await (200...201).contains(house.ask(method, tail, body).status))
    }

    @Test func `is shown and changed`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let user = await house.ask("GET", "/user")
        #expect(user["user"]?["email"] == "alice@example.org")
        let address = #""email":" N@B.org ","phone":"+49 15112","channel":"sms","data":{"a":null}"#
        let body = #"{\#(address),"password":"longer","current_password":"o","nonce":"1"}"#
        #expect(await house.ask("PATCH", "/user", body)["user"] == user["user"])
        let request = try #require(house.project.last("PUT /user"))
        // The link of the mail leads back here.
        #expect(request.query["redirect_to"]?.hasPrefix("http://127.0.0.1:4711/callback/app/") == true)
        #expect(request.body["code_challenge_method"]?.string != nil)
        let members = request.body.object?.members.filter { !$0.name.hasPrefix("code_challenge") } ?? []
        let sent = JSON.object(JSONObject(members))
        #expect(
            sent == [
                "email": "n@b.org", "phone": "4915112", "password": "longer", "current_password": "o", "nonce": "1",
                "data": ["a": .null], "channel": "sms",
            ])
    }

    @Test func `waits in a flow for the codes of another address`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let changed: JSON = [
            "id": .string(AgreeableSupabase.id(1)), "email": "alice@example.org", "new_email": "n@b.org",
        ]
        house.project.answer("PUT /user", 200, changed)
        let answer = await house.ask("PATCH", "/user", #"{"email":"n@b.org"}"#, fields: [("Accept-Language", "ru")])
        #expect(answer.status == 200 && answer["user"]?["new_email"] == "n@b.org")
        let flow = try #require(answer["flow"])
        #expect(flow["method"] == "update_user" && flow["waiting_for"] == "code" && flow["status"] == "pending")
        #expect(flow["user_message"] == "Проверьте почту.")
        #expect(
            flow["awaiting"] == [
                ["type": "email_change", "email": "n@b.org"], ["type": "email_change", "email": "alice@example.org"],
            ])
        let target = "/v1/flows/\(flow["id"]?.string ?? "")"
        #expect(await house.ask("GET", "")["state"] == "authenticated")
        #expect(await house.ask("GET", "")["flow"]?["method"] == "update_user")
        for body in [#"{"code":"123456","email":"x@b.org"}"#, #"{"code":"123456","type":"sms"}"#, #"{"code":"1"}"#] {
            #expect(await house.ask("POST", "\(target)/verify", body).code == "validation_failed")
        }
        let half: JSON = ["code": "200", "msg": "Confirmation link accepted."]
        house.project.answer("POST /verify", 200, half)
        let first = await house.ask("POST", "\(target)/verify", #"{"code":"123456","email":"N@b.org"}"#)
        #expect(first["status"] == "pending" && first["awaiting"]?.array?.count == 1)
        #expect(first["user_message"] == "Confirmed. Now confirm at the other address, too.")
        #expect(house.project.last("POST /verify")?.body["email"] == "n@b.org")
        let second = await house.ask("POST", "\(target)/verify", #"{"code":"654321","type":"email_change"}"#)
        #expect(second["status"] == "completed")
        #expect(house.project.last("POST /verify")?.body["email"] == "alice@example.org")
        // Of a flow with one message there is nothing to choose.
        let other = await house.ask("POST", "/sign-in", #"{"method":"otp","phone":"+4915112"}"#)
        let place = "/v1/flows/\(other["id"]?.string ?? "")/verify"
        #expect(await house.ask("POST", place, #"{"code":"123456","phone":"+4915112"}"#).code == "validation_failed")
    }

    @Test(arguments: [
        "{}", #"{"email":"nobody"}"#, #"{"email":1}"#, #"{"phone":"x"}"#, #"{"data":1}"#, #"{"password":""}"#,
        #"{"phone":"+4915112","channel":"pigeon"}"#, #"{"nonce":"1"}"#, #"{"data":null}"#,
    ])
    func `with a wrong change is not changed`(body: String) async throws {
        let house = try await SupabaseHouse.signedIn()
        #expect(await house.ask("PATCH", "/user", body).code == "validation_failed")
        #expect(house.project.last("PUT /user") == nil)
    }

    @Test func `that forgot the password gets a mail`() async throws {
        let house = try await SupabaseHouse()
        let flow = await house.ask("POST", "/password-reset", #"{"email":"a@b.org","captcha_token":"c"}"#)
        #expect(flow.status == 201)
        #expect(flow["method"] == "recovery")
        #expect(flow["waiting_for"] == "code")
        let sent = try #require(house.project.last("POST /recover"))
        #expect(sent.body["email"] == "a@b.org")
        #expect(sent.query["redirect_to"]?.hasPrefix("http://127.0.0.1:4711/callback/app/") == true)
        let id = flow["id"]?.string ?? ""
        #expect(await house.ask("POST", "/v1/flows/\(id)/verify", #"{"code":"123456"}"#)["status"] == "completed")
        #expect(house.project.last("POST /verify")?.body["type"] == "recovery")
        house.project.refuse("PUT /user", 422, "same_password")
        #expect(await house.ask("PATCH", "/user", #"{"password":"longer"}"#).code == "password_reset_failed")
        for body in ["{}", #"{"email":"x"}"#, #"{"email":null}"#] {
            #expect(await house.ask("POST", "/password-reset", body).code == "validation_failed")
        }
        #expect(
            await house.ask("POST", "/v1/accounts/work/password-reset", #"{"email":"a@b.org"}"#).code
                == "method_unsupported")
    }

    @Test func `has identities to add and to take away`() async throws {
        let house = try await SupabaseHouse.signedIn()
        #expect(await house.ask("GET", "/identities")["identities"]?.array?.count == 1)
        let flow = await house.ask("POST", "/identities", #"{"oauth_provider":"apple","scopes":"name","timeout":9}"#)
        #expect(flow.status == 201)
        #expect(flow["method"] == "link")
        #expect(flow["authorization_url"] == "https://provider.example/page")
        #expect(house.project.last("GET /user/identities/authorize")?.query["provider"] == "apple")
        await house.ask("DELETE", "/v1/flows/\(flow["id"]?.string ?? "")")
        let done = await house.ask("POST", "/identities", #"{"oauth_provider":"google","id_token":"x","nonce":"n"}"#)
        #expect(done.status == 200)
        #expect(done["state"] == "authenticated")
        for body in ["{}", #"{"oauth_provider":"google","id_token":"x"}"#, #"{"params":{"state":"x"}}"#] {
            #expect(await house.ask("POST", "/identities", body).code == "validation_failed")
        }
        #expect(await house.ask("DELETE", "/identities/x").code == "validation_failed")
    }

    @Test func `calls the functions that are listed with what it is given`() async throws {
        let house = try await SupabaseHouse.signedIn()
        house.project.answer("POST /rest/v1/rpc/touch", 200, ["a", 1])
        #expect(await house.ask("POST", "/rpc/touch", #"{"x":{"y":[1,null]}}"#)["result"] == ["a", 1])
        #expect(house.project.last("POST /rest/v1/rpc/touch")?.body == ["x": ["y": [1, .null]]])
        #expect(await house.ask("POST", "/rpc/other", "{}").code == "validation_failed")
        #expect(await house.ask("POST", "/rpc/touch", "[1]").code == "invalid_request")
    }

    @Test func `calls the Edge Functions that are listed, and is told what a function refuses`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let kind = "POST /functions/v1/send-invoice"
        #expect(await house.ask("POST", "/functions/send-invoice", #"{"number":[7,null]}"#)["result"] == [:])
        #expect(house.project.last(kind)?.body == ["number": [7, .null]])
        house.project.answer(kind, 200, "sent", [("Content-Type", "text/plain")])
        let text = await house.ask("POST", "/functions/send-invoice", "{}")
        #expect(text["result"] == #""sent""#)
        house.project.refuse(kind, 403, "session_not_found", "not yours")
        let refusal = await house.ask("POST", "/functions/send-invoice", "{}")
        #expect(refusal.code == "provider_error" && refusal["provider_code"] == "function_error")
        #expect(refusal["provider_message"] == "HTTP 403: not yours")
        #expect(await house.ask("GET", "")["state"] == "authenticated")
        #expect(await house.ask("POST", "/functions/touch", "{}").code == "validation_failed")
        #expect(await house.ask("POST", "/functions/send-invoice", "[1]").code == "invalid_request")
    }

    @Test func `is in the session answer with its level, whoever asks and however`() async throws {
        let house = try await SupabaseHouse.signedIn()
        for isImmediate in [true, false] {
            let answer = await house.ask("GET", "/session", immediate: isImmediate)
            #expect(answer["aal"] == "aal1")
            #expect(answer["next_aal"] == "aal2")
            #expect(answer["issuer"] == "https://ref.supabase.co/auth/v1")
            #expect(answer["provider_token"] == nil)
        }
        for query in ["?scope=x", "?audience=x", "?resource=https://x.example", "?kind=id_token"] {
            #expect(await house.ask("GET", "/session\(query)").code == "method_unsupported")
        }
        // It was not asked for when somebody signed in.
        #expect(await house.ask("GET", "/session?include=provider_token,user")["provider_token"] == nil)
        #expect(await house.ask("GET", "/v1/accounts/work/session?include=provider_token").status != 200)
    }

    @Test func `is shown the upstream token where the sign-in asked for it`() async throws {
        let house = try await SupabaseHouse()
        let flow = await house.ask("POST", "/sign-in", #"{"provider_token":true}"#)
        let url = (flow["redirect_uri"]?.string ?? "") + "?code=c"
        await house.house.deliver(url)
        #expect(await house.ask("GET", "/session")["provider_token"] == nil)
        #expect(await house.ask("GET", "/session?include=provider_token")["provider_token"] == "upstream-access")
    }

    @Test func `sees which OAuth clients are allowed, and revokes one`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let id = AgreeableSupabase.id(8)
        house.project.answer(
            "GET /user/oauth/grants", 200,
            [
                [
                    "client": ["id": .string(id), "name": "Notes"], "scopes": ["email"],
                    "granted_at": "2026-01-02T03:04:05Z",
                ]
            ])
        let list = await house.ask("GET", "/oauth-consents")
        let consent: JSON = [
            "client_id": .string(id), "client_name": "Notes", "scopes": ["email"], "granted_at": "2026-01-02T03:04:05Z",
        ]
        #expect(list.status == 200 && list["consents"] == [consent])
        let revoked = await house.ask("DELETE", "/oauth-consents/\(id)")
        #expect(revoked.status == 200 && revoked["revoked"]?.string == id && revoked["account"] == "app")
        #expect(house.project.last("DELETE /user/oauth/grants")?.query == ["client_id": id])
        #expect(await house.ask("DELETE", "/oauth-consents/x").code == "validation_failed")
        house.project.refuse("DELETE /user/oauth/grants", 404, "oauth_consent_not_found")
        #expect(await house.ask("DELETE", "/oauth-consents/\(id)").code == "not_found")
        house.project.refuse("GET /user/oauth/grants", 404, "feature_disabled")
        #expect(await house.ask("GET", "/oauth-consents").code == "method_unsupported")
    }

    @Test(arguments: ["local", "global", "others"])
    func `signs out as far as it is asked`(scope: String) async throws {
        let house = try await SupabaseHouse.signedIn()
        let answer = await house.ask("DELETE", "/session?scope=\(scope)")
        #expect(answer["state"]?.string == (scope == "others" ? "authenticated" : "unauthenticated"))
        #expect(house.project.last("POST /logout \(scope)") != nil)
        #expect(await house.ask("DELETE", "/session?scope=all").code == "validation_failed")
        // Where nobody is signed in, there is nothing to end, and nobody to say who the others are.
        await house.ask("DELETE", "/session")
        #expect(await house.ask("DELETE", "/session?scope=\(scope)").status == (scope == "others" ? 401 : 200))
        #expect(await house.ask("DELETE", "/v1/accounts/work/session?scope=global").code == "method_unsupported")
    }

    @Test(arguments: ["over_request_rate_limit", "validation_failed", "something_new"])
    func `is told why the other sessions could not be ended`(word: String) async throws {
        let house = try await SupabaseHouse.signedIn()
        house.project.refuse("POST /logout others", 400, word)
        let problem = SupabaseProblem(.refused(.init(code: word, status: 400)), on: .account)
        let answer = await house.ask("DELETE", "/session?scope=others")
        #expect(answer.code == problem.code.rawValue)
        #expect(await house.ask("GET", "")["state"] == "authenticated")
    }
}
