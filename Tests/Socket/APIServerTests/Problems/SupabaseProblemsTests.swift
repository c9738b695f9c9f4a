import LocalHTTP
import RingbackAPI
import RingbackBase
import SupabaseAuth
import SupabaseSignIn
import Testing

@testable import APIServer
@testable import BrokerCore

@Suite(.timeLimit(.minutes(5))) struct `A project's no on the socket` {
    /// Every word of the server's, at a status that it says it with.
    static let words = SupabaseCode.all.sorted()

    private func check(_ answer: APIHouse.Answer, _ problem: SupabaseProblem, _ language: Language) {
        let code = ErrorCode(rawValue: problem.code.rawValue)
        #expect(answer.code == problem.code.rawValue)
        #expect(answer.status == ErrorCode.table[code]?.status)
        #expect(answer["recovery"]?.string == problem.recovery.rawValue)
        #expect(answer["provider_code"]?.string == problem.providerCode)
        #expect(answer["user_message"]?.string == problem.message?.text(in: language))
    }

    @Test(arguments: words)
    func `is one problem for a sign-in, in two languages`(word: String) async throws {
        let house = try await SupabaseHouse()
        let problem = SupabaseProblem(.refused(.init(code: word, status: 422)), on: .signIn)
        for (language, header) in [(Language.english, "en"), (.russian, "ru")] {
            house.project.refuse("POST /otp", 422, word)
            let answer = await house.ask(
                "POST", "/sign-in", #"{"method":"otp","email":"a@b.org"}"#, fields: [("Accept-Language", header)])
            check(answer, problem, language)
        }
        #expect(await house.ask("GET", "/v1/flows").text == #"{"flows":[]}"#)
    }

    @Test(arguments: words)
    func `is one problem for what is done with a session`(word: String) async throws {
        // What the server says of tokens and sessions is acted upon.
        guard !["bad_jwt", "session_not_found", "session_expired"].contains(word) else { return }
        let house = try await SupabaseHouse.signedIn()
        let problem = SupabaseProblem(.refused(.init(code: word, status: 422)), on: .account)
        for (method, tail, kind) in [
            ("PATCH", "/user", "PUT /user"), ("POST", "/factors", "POST /factors"),
            ("DELETE", "/identities/\(AgreeableSupabase.id(5))", "DELETE /user/identities"),
            ("POST", "/rpc/touch", "POST /rest/v1/rpc/touch"), ("POST", "/reauthenticate", "GET /reauthenticate"),
        ] {
            house.project.refuse(kind, 422, word)
            let body = method == "DELETE" ? nil : method == "PATCH" ? #"{"data":{"a":1}}"# : "{}"
            check(await house.ask(method, tail, body), problem, .english)
        }
        #expect(await house.ask("GET", "")["state"] == "authenticated")
    }

    @Test(arguments: words)
    func `is one problem for a code that was typed, and the flow goes on`(word: String) async throws {
        let house = try await SupabaseHouse()
        let id = await house.ask("POST", "/sign-in", #"{"method":"otp","email":"a@b.org"}"#)["id"]?.string ?? ""
        house.project.refuse("POST /verify", 403, word)
        let answer = await house.ask("POST", "/v1/flows/\(id)/verify", #"{"code":"123456"}"#)
        check(answer, SupabaseProblem(.refused(.init(code: word, status: 403)), on: .signIn), .english)
        #expect(await house.ask("GET", "/v1/flows/\(id)")["status"] == "pending")
    }

    @Test(arguments: words)
    func `is one problem for the link of a mail or a browser`(word: String) async throws {
        let house = try await SupabaseHouse()
        let flow = await house.ask("POST", "/sign-in", "{}")
        let url = (flow["redirect_uri"]?.string ?? "") + "?error=server_error&error_code=\(word)&error_description=x"
        let ended = await house.house.deliver(url)["flow"]
        #expect(ended?["status"] == "failed")
        let problem = SupabaseProblem(.refused(.init(code: word, status: 0)), on: .callback)
        #expect(ended?["error"]?["code"]?.string == problem.code.rawValue)
        #expect(ended?["user_message"]?.string == problem.message?.text(in: .english))
    }

    @Test func `with words of its own is passed on, cleaned`() async throws {
        let house = try await SupabaseHouse()
        house.project.refuse("POST /token password", 400, "brand_new", "Наша\u{1B}[31m политика")
        let answer = await house.signIn()
        #expect(answer.code == "provider_error")
        #expect(answer["provider_code"] == "brand_new")
        #expect(answer["provider_message"] == "Наша?[31m политика")
    }

    @Test func `that asks to wait says how long`() async throws {
        let house = try await SupabaseHouse()
        house.project.refuse(
            "POST /otp", 429, "over_email_send_rate_limit",
            "For security purposes, you can only request this after 59 seconds.")
        let answer = await house.ask("POST", "/sign-in", #"{"method":"otp","email":"a@b.org"}"#)
        #expect(answer.status == 429)
        #expect(answer["retry_after"] == 59)
        #expect(answer.response.fields["Retry-After"] == "59")
        #expect(answer["user_message"] == "Too many attempts. Please wait a few minutes.")
    }

    @Test func `to a password lists its reasons`() async throws {
        let house = try await SupabaseHouse.signedIn()
        house.project.answer(
            "PUT /user", 422,
            ["code": "weak_password", "message": "x", "weak_password": ["reasons": ["length", "pwned"]]])
        let answer = await house.ask("PATCH", "/user", #"{"password":"correct horse"}"#)
        #expect(answer.code == "weak_password")
        #expect(answer["reasons"] == ["length", "pwned"])
        #expect(answer["detail"] == "The project responded with “weak_password”: x")
        // What the project says of it may have a part of it: then the reasons are told in words of ours.
        house.project.answer(
            "PUT /user", 422,
            [
                "code": "weak_password", "message": "Password is known to be weak.",
                "weak_password": ["reasons": ["characters", "pwned", "policy"]],
            ])
        let quoted = await house.ask("PATCH", "/user", #"{"password":"password1234"}"#)
        #expect(quoted["reasons"] == ["characters", "pwned", "policy"] && quoted["provider_message"] == nil)
        #expect(
            quoted["detail"]
                == "The project responded with “weak_password”: it lacks some of the required characters, it is known from a leak, policy."
        )
    }

    @Test(arguments: [
        (401, "gateway", "invalid_configuration"), (404, "<html>", "invalid_configuration"),
        (540, "paused", "invalid_configuration"), (503, "x", "provider_unreachable"),
        (200, "<html>", "invalid_provider_response"), (302, "", "invalid_provider_response"),
    ])
    func `of somebody else's is told from the project's`(status: Int, body: String, code: String) async throws {
        let house = try await SupabaseHouse.signedIn()
        for (method, tail, kind) in [
            ("POST", "/sign-in", "POST /token password"), ("GET", "/user", "GET /user"),
            ("POST", "/factors", "POST /factors"),
        ] {
            house.project.answer(kind, status, .string(body))
            let sent =
                tail == "/sign-in"
                ? #"{"method":"password","email":"a@b.org","password":"correct horse"}"# : method == "GET" ? nil : "{}"
            #expect(await house.ask(method, tail, sent).code == code)
        }
    }
}
