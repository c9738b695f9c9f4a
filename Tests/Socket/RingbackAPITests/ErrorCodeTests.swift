import RingbackAPI
import Testing

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
        (403, ["access_denied", "policy_denied"]),
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
