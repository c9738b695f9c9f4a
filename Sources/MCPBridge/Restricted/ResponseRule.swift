internal import StrictJSON

// Attack: a server, or a tool of it, sends back what it was sent, and the token with it. What comes back is parsed and
// written anew, so that no escape hides a text; a message with the token in it is not passed on.

/// What an exposed socket lets through of a server's response.
public struct ResponseRule: Sendable {
    private let rule: MessageRule
    private let secrets: [[UInt8]]

    /// - Parameter secrets: what must not be passed on: the token, and what else the relay adds to a request. Shorter ones
    ///   than 8 bytes are left out: every text could have them.
    public init(_ rule: MessageRule, secrets: [String]) {
        self.rule = rule
        self.secrets = secrets.filter { $0.utf8.count >= ResponseRule.shortest }.map { secret in
            // As it is written in JSON, without the quotes.
            Array(JSON.string(secret).serialized().dropFirst().dropLast())
        }
    }

    private static let shortest = 8

    /// What becomes of a message of the server.
    public enum Passed: Sendable, Equatable {
        /// It is passed on as these bytes.
        case message([UInt8])
        /// It is not passed on.
        case withheld(Reason, id: MessageID?)
    }

    /// Why a message is withheld.
    public enum Reason: String, Sendable, Equatable {
        /// It is not strict JSON, or no object, or too long.
        case unreadable
        /// It has the token in it.
        case secret
    }

    /// Decides on a message of the server. Tools that are not allowed are not in the list that is passed on.
    public func judge(_ bytes: [UInt8]) -> Passed {
        guard case .object(var object)? = MessageRule.parse(bytes) else { return .withheld(.unreadable, id: nil) }
        let written = object["id"].map { $0.serialized() } ?? []
        // An error that repeats an id repeats no secret.
        let id = object["id"].map(MessageRule.isID) == true && !hasSecret(written) ? MessageID(written[...]) : nil
        // No other result of MCP has this member, so it is a list of tools, whatever it is the response to.
        if rule.tools != nil, var result = object["result"]?.object, let tools = result["tools"] {
            guard let list = tools.array else { return .withheld(.unreadable, id: id) }
            result["tools"] = .array(list.filter { $0["name"]?.string.map { rule.allows(tool: $0) } ?? false })
            object["result"] = .object(result)
        }
        let message = JSON.object(object).serialized()
        return hasSecret(message) ? .withheld(.secret, id: id) : .message(message)
    }

    /// A message that is passed on in place of the response that is withheld.
    public static func error(_ reason: Reason, for id: MessageID) -> [UInt8] {
        let sentence =
            switch reason {
            case .unreadable: "The MCP server's response is not strict JSON, or too long for an exposed socket."
            case .secret: "The MCP server's response has the access token in it, so it is not passed on."
            }
        return ErrorResponse.bytes(id, code: -32_000, message: sentence, data: [("code", "response_withheld")])
    }

    /// True for a text that may be passed on: a value of a field, or a part of an event.
    public func allows(text: String) -> Bool {
        FieldRules.isValue(text) && !hasSecret(Array(JSON.string(text).serialized()))
    }

    private func hasSecret(_ bytes: [UInt8]) -> Bool {
        secrets.contains { secret in
            var start = 0
            while let found = bytes[start...].firstIndex(of: secret[0]), bytes.count - found >= secret.count {
                if bytes[found..<(found + secret.count)].elementsEqual(secret) { return true }
                start = found + 1
            }
            return false
        }
    }
}
