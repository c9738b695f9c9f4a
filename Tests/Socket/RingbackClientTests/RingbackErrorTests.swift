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
