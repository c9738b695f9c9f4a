import RingbackBase
import Testing

@testable import RingbackClient

@Suite struct `An error of the client library` {
    private func error(_ document: JSON) throws -> RingbackError { try #require(RingbackError(reading: document)) }

    @Test func `is described for people`() throws {
        let told = try error([
            "code": "rate_limited", "detail": "The project asks to wait.", "user_message": "Too many attempts.",
        ])
        #expect(told.userMessage == "Too many attempts.")
        #expect("\(told)" == "Too many attempts." && told.debugDescription == "rate_limited: The project asks to wait.")
        #expect(try error(["code": "timeout", "detail": "It took too long."]).description == "It took too long.")
    }

    @Test func `tells a wrong code from a wrong password, and the provider's code`() throws {
        let known: [(String, RingbackError.Kind)] = [
            ("invalid_credentials", .wrongPassword), ("current_password_invalid", .wrongPassword),
            ("otp_expired", .wrongCode), ("reauthentication_not_valid", .wrongCode),
            ("mfa_verification_failed", .wrongCode), ("webauthn_verification_failed", .invalidCredentials),
        ]
        for (code, kind) in known {
            let error = try error(["code": "invalid_credentials", "provider_code": .string(code)])
            #expect(error.kind == kind && error.providerCode == code)
        }
        let passphrase = try error(["code": "invalid_credentials", "detail": "The passphrase does not open the vault."])
        #expect(passphrase.kind == .invalidCredentials && passphrase.providerCode == nil)
        let refused = try error(["code": "provider_error", "provider_code": "invalid_client"])
        #expect(refused.kind == .providerError && refused.providerCode == "invalid_client")
    }
}

@Suite struct `An instant of the client library` {
    private func text(_ seconds: Int) -> String { WallInstant(secondsSince1970: seconds).description }

    @Test func `reads as RFC 3339 in UTC`() {
        // As `date -u -d @SECONDS +%FT%TZ` has them.
        let known = [
            (0, "1970-01-01T00:00:00Z"), (951_782_400, "2000-02-29T00:00:00Z"), (951_868_799, "2000-02-29T23:59:59Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"), (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"), (-62_167_219_200, "0000-01-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ]
        for (seconds, expected) in known { #expect(text(seconds) == expected) }
        #expect(text(253_402_300_800) == "@253402300800" && text(.min) == "@\(Int.min)" && text(.max) == "@\(Int.max)")
    }

    @Test func `is compared and measured`() {
        let (early, late) = (WallInstant(secondsSince1970: 10), WallInstant(secondsSince1970: 70))
        #expect(early < late && early == WallInstant(secondsSince1970: 10))
        #expect(early.duration(to: late) == .seconds(60) && late.duration(to: early) == .seconds(-60))
        #expect(WallInstant(secondsSince1970: .min).duration(to: late) == .seconds(Int.max))
        #expect(WallInstant.now > late)
    }
}
