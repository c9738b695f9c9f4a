import HTTPMessages
import Secrets

/// POST requests with a form, the shape of every request to a token, revocation or similar endpoint. Parameters are
/// written straight into the body, which is secret as a whole.
extension HTTPRequest {
    /// Answers with three tokens of the largest size still fit; a longer one is somebody's mistake or attack.
    static let maxAnswer = 262_144

    /// An empty form for the endpoint; JSON is asked for, since some servers answer in forms otherwise.
    static func form(to endpoint: String) -> HTTPRequest {
        HTTPRequest(
            method: "POST", url: endpoint,
            fields: HTTPFields([
                ("Accept", "application/json"), ("Content-Type", "application/x-www-form-urlencoded"),
            ]),
            limits: HTTPLimits(maxBody: maxAnswer)
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
