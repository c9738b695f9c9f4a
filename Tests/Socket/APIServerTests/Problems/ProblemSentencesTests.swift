import LocalHTTP
import RingbackAPI
import RingbackBase
import SupabaseAuth
import SupabaseSignIn
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite struct `A problem document` {
    private static func name() -> AccountName {
        guard let name = AccountName("work") else { preconditionFailure("a good name") }
        return name
    }

    /// Every failure of the broker, the code it becomes, and what a person is told.
    static let table: [(BrokerError, ErrorCode, String?)] = [
        (.accountNotFound("x"), .accountNotFound, nil), (.flowNotFound, .flowNotFound, nil),
        (.signInRequired(name()), .signInRequired, nil),
        (.sessionRanOut(name(), advice: .any), .signInRequired, nil),
        (.sessionExpired(name()), .sessionExpired, "Session expired. Please sign in again."),
        (
            .refreshRefused(name(), host: "x", .client(code: "invalid_client", message: nil)), .refreshRefused,
            "The session cannot be renewed. Please sign in again."
        ),
        (
            .clientForgotten(name(), host: "x", code: nil, message: nil), .providerError,
            "Sign in failed. Please try again."
        ),
        (.accessDenied(name()), .accessDenied, nil), (.conflict(.any), .stateConflict, nil),
        (.invalid(field: "x", reason: .any), .validationFailed, nil),
        (.methodUnsupported(.any), .methodUnsupported, nil),
        (.portInUse(ListenerFailure(.portTaken(by: nil), port: 1)), .portInUse, nil),
        (.entranceUnavailable(ListenerFailure(.portTaken(by: nil), port: 1)), .portInUse, nil),
        (.invalidCallback(.any), .invalidCallback, "Sign in failed. Please try again."),
        (.flowEnded, .flowExpired, nil),
        (.flowExpired(.any), .flowExpired, "This was not finished in time. Please try again."),
        (.flowCancelled(.any), .flowCancelled, nil), (.vaultLocked(.any), .vaultLocked, nil),
        (.wrongPassphrase, .invalidCredentials, nil),
        (.tooManyAttempts(retryAfter: 9), .rateLimited, "Too many attempts. Please wait a few minutes."),
        (.vaultFailed(.any), .internalError, nil),
        (
            .vaultUnreachable(.any), .vaultUnreachable, "Service temporarily unavailable. Please try again later."
        ),
        (.misconfigured(.any), .invalidConfiguration, nil),
        (.timedOut, .timeout, nil), (.cancelled, .shuttingDown, nil),
        (
            .provider(.unreachable(host: "x", reason: .any)), .providerUnreachable,
            "Connection failed. Please check your internet and try again."
        ),
        (
            .provider(.unavailable(status: 500, retryAfter: 3)), .providerUnreachable,
            "Service temporarily unavailable. Please try again later."
        ),
        (
            .provider(.rateLimited(retryAfter: nil)), .rateLimited, "Too many attempts. Please wait a few minutes."
        ),
        (.provider(.invalidResponse(.any)), .invalidProviderResponse, "Sign in failed. Please try again."),
        (
            .provider(.refused(code: "x", message: nil)), .providerError, "Sign in failed. Please try again."
        ),
        (
            .upstream(name(), .provider(.refused(code: "x", message: nil))), .providerError,
            "Sign in failed. Please try again."
        ), (.stepUpRequired(name(), acrValues: "x", maxAge: 9), .signInRequired, nil),
        (.serviceRefused(name(), code: "x", message: nil), .providerError, nil),
    ]

    @Test func `a cause of a finding is one that clients know`() {
        #expect(Finding.Cause.allCases.allSatisfy { ProblemCause(rawValue: $0.rawValue) != nil })
    }

    @Test func `an odd answer on a refresh is nothing to tell a person`() {
        #expect(Problem(.provider(.invalidResponse(.any)), language: .english).userMessage == nil)
        #expect(Problem(.provider(.refused(code: "x", message: nil)), language: .english).userMessage == nil)
    }

    @Test(arguments: table.indices)
    func `each failure has one code, and the person is told by cause in two languages`(index: Int) {
        let (error, code, message) = `A problem document`.table[index]
        let english = Problem(error, language: .english, endedSignIn: true)
        #expect(english.code == code)
        #expect(english.status == ErrorCode.table[code]?.status)
        #expect(english.userMessage == message)
        let russian = Problem(error, language: .russian, endedSignIn: true)
        #expect((russian.userMessage == nil) == (message == nil))
        if let text = russian.userMessage {
            let isCyrillic = text.unicodeScalars.contains { (0x400...0x4FF).contains($0.value) }
            #expect(isCyrillic && text != message)
        }
        // What a program reads is the same in every language.
        #expect(russian.detail == english.detail)
    }

    @Test(
        arguments: [
            (nil, false), ("", false), ("en", false), ("ru", true), ("RU", true), ("ru-RU,ru;q=0.9,en;q=0.8", true),
            ("de, ru;q=0.5", true), ("en-GB,ru", false), ("de", false), ("rue", false), (" ru ", true), ("*", false),
        ] as [(String?, Bool)])
    func `the person's language is the first that we speak`(header: String?, isRussian: Bool) {
        #expect((Language(accepting: header.map { [$0] } ?? []) == .russian) == isRussian)
    }

    @Test func `a session that ended after the vault was on another machine may have been refreshed by a copy`() {
        for hasMoved in [false, true] {
            let error = BrokerError.sessionExpired(Self.name(), hasMoved: hasMoved)
            let problem = Problem(error, language: .english)
            let words = "another copy of this vault may have refreshed it"
            #expect(problem.detail?.contains(words) == hasMoved)
            // The other end of an exposed socket has no part in the vault.
            #expect(Problem(elsewhere: error, language: .english).detail?.contains(words) == false)
        }
    }

    @Test func `a port that cannot be listened at has its host, its port and its setting`() {
        let taken = ListenerFailure(.portTaken(by: 1_001), host: "::1", port: 4_711, setting: "redirect_uri")
        let problem = Problem(.portInUse(taken), language: .english)
        #expect(problem.detail == "The callback cannot be listened for: port 4711 is in use by uid 1001.")
        #expect(JSON.object(problem.extensions) == ["host": "::1", "port": 4_711, "setting": "redirect_uri"])
        let entrance = Problem(.entranceUnavailable(ListenerFailure(.portTaken(by: nil))), language: .english)
        #expect(entrance.detail == "No address for a browser to open can be listened for: no port is free.")
        #expect(entrance.extensions.members.isEmpty)
    }

    @Test func `a Russian-speaking caller reads Russian`() async throws {
        let house = try await APIHouse.signedIn()
        house.clock.advance(by: 3_600)
        house.provider.goAway()
        let answer = await house.ask(
            "GET", "/v1/accounts/work/session", fields: [("Accept-Language", "ru-RU,ru;q=0.9")])
        #expect(answer["user_message"] == "Нет соединения. Проверьте интернет и попробуйте снова.")
        let view = await house.ask("GET", "/v1/accounts/work", fields: [("Accept-Language", "ru")])
        #expect(view["error"]?["user_message"] == answer["user_message"])
    }
}

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

@Suite struct `A provider's no to a service` {
    @Test(arguments: [
        ("invalid_client", "client's secret or key"), ("unauthorized_client", "allow it at the provider"),
        ("unsupported_grant_type", "choose another grant"), ("invalid_grant", "assertion_file"),
        ("invalid_scope", "scopes"), ("invalid_target", "audience and resource"), ("odd", "“odd”"),
    ])
    func `says what to mend, and asks for no sign-in`(code: String, words: String) throws {
        let name = try #require(AccountName("build"))
        let problem = Problem(.serviceRefused(name, code: code, message: "because"), language: .english)
        #expect(problem.code == .providerError && problem.status == 422)
        #expect(problem.recovery == "fix_configuration" && problem.userMessage == nil)
        #expect(problem.detail?.contains(words) == true && problem.detail?.contains("build") == true)
        #expect(problem.extensions["provider_code"]?.string == code)
        #expect(problem.extensions["provider_message"]?.string == "because")
        let bare = Problem(.serviceRefused(name, code: code, message: nil), language: .russian)
        #expect(bare.extensions["provider_message"] == nil && bare.detail?.contains("()") == false)
    }
}
