import BrokerCore
import RingbackAPI
import RingbackBase
import Testing

@testable import APIServer

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
