internal import BrokerCore
internal import RingbackAPI
internal import StrictJSON

extension Problem {
    /// A provider's error response to a service. A service has no sign-in, so the text says what to correct.
    init(refused name: AccountName, code: String, message: String?) {
        var words = "The provider rejected the token request of \(name): “\(code)”"
        if let message { words += " (\(message))" }
        words += "."
        if let advice = Problem.advice(on: code) { words += " \(advice)" }
        self.init(
            .providerError, words, recovery: .fixConfiguration, extensions: Problem.members(ofProvider: code, message))
    }

    /// Advice on the errors of RFC 6749 section 5.2 and RFC 8693 section 2.2.2 that a service may get.
    private static func advice(on code: String) -> String? {
        switch code {
        case "invalid_client": "Check client_id, client_authentication and the client's secret or key."
        case "unauthorized_client", "unsupported_grant_type":
            "The client may not use this grant: allow it at the provider, or choose another grant."
        case "invalid_grant": "Check assertion_file, and which issuers of assertions the provider trusts."
        case "invalid_scope": "Check scopes."
        case "invalid_target": "Check audience and resource."
        default: nil
        }
    }

    /// The provider's error, for programs.
    static func members(ofProvider code: String?, _ message: String?) -> JSONObject {
        var members = JSONObject()
        members["provider_code"] = code.map { .string($0) }
        members["provider_message"] = message.map { .string($0) }
        return members
    }
}
