import HTTPMessages
import Secrets

/// POST requests with a form, as all token, revocation and similar endpoints take. The parameters are written directly
/// into the body, which is a secret.
extension HTTPRequest {
    /// The maximum size of a response in bytes: room for three tokens of the maximum length.
    static let maxResponse = 262_144

    /// A request with an empty form. `Accept` asks for JSON, because some servers respond with a form otherwise.
    static func form(to endpoint: String) -> HTTPRequest {
        HTTPRequest(
            method: "POST", url: endpoint,
            fields: HTTPFields([
                ("Accept", "application/json"), ("Content-Type", "application/x-www-form-urlencoded"),
            ]),
            limits: HTTPLimits(maxBody: maxResponse)
        )
    }

    /// Adds a parameter to the form.
    mutating func appendParameter(_ name: String, _ value: String) {
        var form = body?.revealedBytes() ?? []
        if !form.isEmpty { form.append(UInt8(ascii: "&")) }
        form += FormEncoding.encode([(name, value)], spaceAsPlus: true).utf8
        body = Secret(bytes: form)
    }

    /// Adds a secret parameter to the form.
    mutating func appendParameter(_ name: String, _ value: Secret) {
        appendParameter(name, value.revealed())
    }
}
