import RingbackAPI
import RingbackBase
import Testing

@Suite struct `A problem document` {
    @Test func `says what the table says`() {
        let problem = Problem(.rateLimited, "Wait.", retryAfter: 30)
        #expect(
            problem.json.text
                == #"{"title":"Too early: wait before the next attempt","status":429,"code":"rate_limited","detail":"Wait.","#
                + #""recovery":"retry","retry_after":30}"#)
    }

    @Test(arguments: ErrorCode.table.keys.sorted { $0.rawValue < $1.rawValue })
    func `comes back as it went`(code: ErrorCode) throws {
        let bare = Problem(code)
        let full = Problem(
            code, "detail \"quoted\"", recovery: .link, userMessage: "Позже", retryAfter: 0,
            extensions: JSONObject([.init("errors", [["file": "a", "line": 3]]), .init("provider_code", "x")]))
        for problem in [bare, full] {
            let document = try JSON(parsing: problem.json.serialized())
            #expect(Problem(reading: document, status: 599) == problem)
        }
    }

    @Test func `is read from whatever a stranger sends`() {
        let empty = Problem(reading: [:], status: 418)
        #expect(empty.code == "http_418")
        #expect(empty.status == 418)
        #expect(empty.title == "HTTP status 418")
        #expect(empty.recovery == "none")
        #expect(Problem(reading: [1, 2], status: 500).code == "http_500")
        let odd = Problem(reading: ["code": 7, "status": "x", "detail": nil, "retry_after": "soon"], status: 503)
        #expect(odd.code == "http_503")
        #expect(odd.status == 503)
        #expect(odd.detail == nil)
        #expect(odd.retryAfter == nil)
        #expect(odd.extensions.members.isEmpty)
    }

    @Test func `keeps a code and a recovery that are unknown here`() {
        let problem = Problem(reading: ["code": "future_code", "recovery": "phone_home", "hint": "x"], status: 400)
        #expect(problem.code == "future_code")
        #expect(problem.recovery == "phone_home")
        #expect(problem.extensions["hint"] == "x")
    }

    @Test func `of a code without a meaning is our mistake`() {
        let problem = Problem("made_up")
        #expect(problem.status == 500)
        #expect(problem.title == "made_up")
        #expect(problem.recovery == "none")
    }
}

@Suite struct `The error codes` {
    /// The table of docs/api.md.
    private static let documented: [(status: Int, codes: [ErrorCode])] = [
        (
            400,
            [
                "invalid_request", "invalid_callback", "validation_failed", "weak_password", "method_unsupported",
                "invalid_configuration",
            ]
        ),
        (401, ["sign_in_required", "session_expired", "refresh_refused", "invalid_credentials"]),
        (403, ["access_denied", "policy_denied", "consent_required", "consent_timeout"]),
        (404, ["not_found", "account_not_found", "flow_not_found", "user_not_found"]),
        (405, ["method_not_allowed"]), (413, ["payload_too_large"]), (415, ["unsupported_media_type"]),
        (409, ["state_conflict", "vault_not_shared", "email_already_in_use", "port_in_use"]),
        (410, ["flow_expired", "flow_cancelled"]),
        (422, ["provider_error", "password_reset_failed"]),
        (423, ["vault_locked"]), (429, ["rate_limited"]), (500, ["internal_error"]),
        (502, ["invalid_provider_response"]), (503, ["provider_unreachable", "vault_unreachable", "shutting_down"]),
        (504, ["timeout"]),
    ]

    @Test func `each error code has the status of docs/api.md`() {
        for (status, codes) in Self.documented {
            for code in codes { #expect(ErrorCode.table[code]?.status == status, "\(code.rawValue)") }
        }
        #expect(Set(Self.documented.flatMap(\.codes)) == Set(ErrorCode.table.keys))
    }

    @Test func `have titles that are sentences of one line`() {
        let titles = ErrorCode.table.values.map(\.title)
        #expect(Set(titles).count == titles.count)
        for title in titles { #expect(title.first?.isUppercase == true && !title.contains("\n") && title.last != ".") }
    }

    @Test func `stay open for a newer daemon's`() {
        #expect(ErrorCode(rawValue: "never_heard_of") == "never_heard_of")
        #expect(ErrorCode.table["never_heard_of"] == nil)
    }

    @Test func `each error code has the recovery of docs/api.md`() {
        let words = [Recovery.retry, .signIn, .link, .fixConfiguration, .none].map(\.rawValue)
        #expect(words == ["retry", "sign_in", "link", "fix_configuration", "none"])
    }
}
