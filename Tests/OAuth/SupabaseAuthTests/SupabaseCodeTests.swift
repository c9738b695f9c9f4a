import RingbackBase
import Testing

@testable import SupabaseAuth

/// Columns: the code, a status it comes with, the socket API's code, the recovery, what the user is told.
private let rows = SupabaseVector.rows(of: "codes.txt")

@Suite struct `The table of error codes` {
    @Test func `every code of the protocol is in it, and no other`() {
        #expect(rows.count == 109)
        #expect(Set(rows.map { $0[0] }) == SupabaseCode.all)
    }

    @Test(arguments: rows) func `a code means what the vectors say`(row: [String]) throws {
        let meaning = try #require(SupabaseCode.table[row[0]])
        #expect(meaning.code.rawValue == row[2])
        #expect(meaning.recovery.rawValue == row[3])
        #expect(meaning.message?.rawValue ?? "" == row[4])
    }

    @Test(arguments: rows) func `a code is found in every shape of an error`(row: [String]) throws {
        let code = row[0]
        let status = try #require(Int(row[1]))
        let version = ["X-Supabase-Api-Version": "2024-01-01"]
        let shapes: [([String: String], JSON)] = [
            ([:], ["code": .integer(status), "error_code": .string(code), "msg": "x"]),
            (["x-sb-error-code": code], ["code": .integer(status), "error_code": .string(code), "msg": "x"]),
            (version, ["code": .string(code), "message": "x"]),
            ([:], ["code": .string(code), "message": "x"]),
            (["x-sb-error-code": code], ["code": .integer(status), "msg": "x"]),
        ]
        for (headers, body) in shapes {
            let error = ErrorReading.error(
                HTTPResponse(
                    status: status, fields: HTTPFields(headers.map { ($0.key, $0.value) }),
                    body: Secret(bytes: body.serialized())))
            #expect(error == .refused(.init(code: code, status: status, message: "x")))
            // What a failing server says of a sign-in may be more than its code's meaning: see the next test.
            let problem = SupabaseProblem(error, on: status < 500 ? .signIn : .refresh)
            #expect(problem.code.rawValue == row[2])
            #expect(problem.recovery.rawValue == row[3])
            #expect(problem.message?.rawValue ?? "" == row[4])
            #expect(problem.providerCode == code)
            #expect(problem.providerMessage == "x")
            #expect(problem.isTrouble == (status >= 500))
        }
    }

    @Test(
        arguments: ["unexpected_failure", "request_timeout", "session_not_found", "user_not_found"], [500, 503, 504])
    func `a failing server's words are shown, and prove nothing`(code: String, status: Int) {
        let error = SupabaseError.refused(.init(code: code, status: status, message: "x"))
        #expect(error.isTransient && RefreshVerdict(error) == .transient(retryAfter: nil))
        for occasion in [SupabaseProblem.Occasion.signIn, .callback, .refresh, .account, .credential, .passwordReset] {
            let problem = SupabaseProblem(error, on: occasion)
            #expect(problem.isTrouble && problem.recovery == .retry && !problem.endsSession)
            #expect(problem.providerCode == code && problem.providerMessage == "x")
        }
        // A trigger or a hook that fails a sign-in says why: the service itself is there.
        let isSaid = code == "unexpected_failure"
        let signIn = SupabaseProblem(error, on: .signIn)
        let expected: SupabaseProblem.Code = isSaid ? .providerError : .providerUnreachable
        let message: UserMessage = isSaid ? .signInFailed : .serviceDown
        #expect(signIn.code == expected && signIn.message == message)
        // So does a server that does not believe a credential, and a trigger that refuses a change of the user.
        for occasion in [SupabaseProblem.Occasion.credential, .account, .identityPage, .passwordReset] {
            #expect(SupabaseProblem(error, on: occasion).code == expected)
        }
    }

    @Test(arguments: UserMessage.allCases) func `a person is told in both languages`(message: UserMessage) {
        let english = message.text(in: .english)
        let russian = message.text(in: .russian)
        #expect(english.utf8.allSatisfy { $0 < 0x80 } && english.hasSuffix("."))
        #expect(russian.utf8.contains { $0 > 0x80 } && russian.hasSuffix("."))
    }

    @Test func `the user messages are those of docs/api.md`() {
        let sentences: [UserMessage: String] = [
            .network: "Connection failed. Please check your internet and try again.",
            .signInFailed: "Sign in failed. Please try again.",
            .notFinished: "This was not finished in time. Please try again.",
            .sessionEnded: "Session expired. Please sign in again.",
            .serviceDown: "Service temporarily unavailable. Please try again later.",
            .tooManyAttempts: "Too many attempts. Please wait a few minutes.",
            .wrongCode: "Invalid code. Please try again.",
            .unknownUser: "Account not found. Please sign up.",
            .emailTaken: "This email is already associated with another account.",
            .checkEmail: "Check your email.",
        ]
        for (message, text) in sentences { #expect(message.text(in: .english) == text) }
    }

    @Test(
        arguments: [
            (.account, "user_not_found", 403, .sessionExpired), (.refresh, "user_not_found", 400, .sessionExpired),
            (.signIn, "user_not_found", 404, .userNotFound), (.callback, "otp_expired", 0, .flowExpired),
            (.signIn, "otp_expired", 403, .invalidCredentials), (.callback, "access_denied", 0, .accessDenied),
            (.callback, "unexpected_failure", 0, .providerError), (.callback, "server_error", 0, .providerError),
            (.callback, "identity_already_exists", 0, .emailAlreadyInUse),
            (.account, "no_authorization", 401, .signInRequired),
            (.account, "no_authorization", 403, .stateConflict),
            (.passwordReset, "same_password", 422, .passwordResetFailed),
            (.account, "same_password", 422, .validationFailed), (.passwordReset, "weak_password", 422, .weakPassword),
            (.passwordReset, "user_sso_managed", 422, .passwordResetFailed),
            (.refresh, "validation_failed", 400, .sessionExpired),
            (.signIn, "validation_failed", 400, .validationFailed),
            (.authorization, "validation_failed", 400, .methodUnsupported), (.signIn, "never_seen", 429, .rateLimited),
            (.signIn, "session_not_found", 500, .providerUnreachable),
            (.account, "user_not_found", 503, .providerUnreachable),
            (.signIn, "never_seen", 418, .providerError),
            (.identityPage, "validation_failed", 400, .methodUnsupported),
            (.identityPage, "user_not_found", 403, .sessionExpired),
            (.identityPage, "manual_linking_disabled", 404, .methodUnsupported),
            (.credential, "user_not_found", 403, .sessionExpired),
            (.credential, "validation_failed", 404, .notFound),
            (.credential, "mfa_verification_failed", 422, .invalidCredentials),
        ] as [(SupabaseProblem.Occasion, String, Int, SupabaseProblem.Code)])
    func `a word means another thing in another place`(
        occasion: SupabaseProblem.Occasion, code: String, status: Int, expected: SupabaseProblem.Code
    ) {
        let problem = SupabaseProblem(.refused(.init(code: code, status: status)), on: occasion)
        #expect(problem.code == expected)
        #expect(problem.providerCode == code)
    }

    @Test func `a no at the provider is nothing to tell the person`() {
        #expect(SupabaseProblem(.refused(.init(code: "access_denied", status: 0)), on: .callback).message == nil)
    }

    @Test func `a field that is wrong has its own words`() throws {
        let short = SupabaseProblem(PasswordRule.tooShort)
        #expect(short.code == .weakPassword && short.weaknesses == ["length"] && short.message == .weakPassword)
        let email = SupabaseProblem(FieldError(field: "email", reason: "x"))
        #expect(email.code == .validationFailed && email.message == .invalidEmail)
        #expect(SupabaseProblem(FieldError(field: "code", reason: "x")).message == .wrongCode)
        #expect(SupabaseProblem(FieldError(field: "id", reason: "x")).message == nil)
        #expect(SupabaseProblem.addressTaken.code == .emailAlreadyInUse)
        #expect(try SupabaseProblem.taken(Contact(email: "a@b.c", phone: nil)) == .addressTaken)
        #expect(try SupabaseProblem.taken(Contact(email: nil, phone: "+4915112")).message == .phoneTaken)
    }

    @Test func `only what may pass by itself is worth repeating`() {
        #expect(SupabaseError.unavailable(status: 503, retryAfter: nil).isTransient)
        #expect(SupabaseError.invalid(reason: "x").isTransient)
        #expect(SupabaseError.refused(.init(code: "conflict", status: 409)).isTransient)
        #expect(!SupabaseError.refused(.init(code: "bad_jwt", status: 403)).isTransient)
        #expect(!SupabaseError.misconfigured(reason: "x").isTransient)
    }
}
