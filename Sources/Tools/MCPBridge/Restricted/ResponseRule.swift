internal import StrictJSON

// Attack: a server, or a tool of it, sends back what it was sent, and the token with it. What comes back is parsed and
// written anew, so that no escape hides a text; a message with the token in it is not passed on.

/// What an exposed socket lets through of a server's response.
public struct ResponseRule: Sendable {
    private let rule: MessageRule
    private let secrets: [TextHash]

    /// - Parameter secrets: what must not be passed on: the token, and what else the relay adds to a request. Shorter ones
    ///   than 8 bytes are left out: every text could have them.
    public init(_ rule: MessageRule, secrets: [String]) {
        self.rule = rule
        self.secrets = secrets.filter { $0.utf8.count >= ResponseRule.shortest }.map { secret in
            // As it is written in JSON, without the quotes.
            TextHash(JSON.string(secret).serialized().dropFirst().dropLast())
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
        /// The socket's relay holds too much of other responses.
        case crowded
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
            case .crowded: "This exposed socket has too many large responses at a time. Try again later."
            }
        return ErrorResponse.bytes(id, code: -32_000, message: sentence, data: [("code", "response_withheld")])
    }

    /// True for a text that may be passed on: a value of a field, or a part of an event.
    public func allows(text: String) -> Bool {
        FieldRules.isValue(text) && !hasSecret(Array(JSON.string(text).serialized()))
    }

    private func hasSecret(_ bytes: [UInt8]) -> Bool { secrets.contains { $0.isFound(in: bytes) } }
}

/// Finds a text in others by its hash alone (Karp and Rabin), so that a token is not in memory for as long as the response
/// lasts. The hash is a polynomial modulo 2^61 - 1 at a random place, so that no other text with the same hash can be made
/// on purpose.
private struct TextHash: Sendable {
    private static let prime: UInt64 = 1 << 61 - 1
    private static let place = UInt64.random(in: 1 << 32..<prime)

    private let count: Int
    private let hash: UInt64
    /// What a byte counts when it leaves the window.
    private let weight: UInt64

    init(_ text: ArraySlice<UInt8>) {
        count = text.count
        hash = text.reduce(0) { TextHash.next($0, $1) }
        weight = text.reduce(1) { weight, _ in TextHash.product(weight, TextHash.place) }
    }

    func isFound(in bytes: [UInt8]) -> Bool {
        guard bytes.count >= count else { return false }
        var window: UInt64 = 0
        for (index, byte) in bytes.enumerated() {
            window = TextHash.next(window, byte)
            if index >= count {
                let left = TextHash.product(weight, UInt64(bytes[index - count]) + 1)
                window = window >= left ? window - left : window + TextHash.prime - left
            }
            if index >= count - 1, window == hash { return true }
        }
        return false
    }

    private static func next(_ hash: UInt64, _ byte: UInt8) -> UInt64 {
        let sum = product(hash, place) + UInt64(byte) + 1
        return sum >= prime ? sum - prime : sum
    }

    private static func product(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let (high, low) = left.multipliedFullWidth(by: right)
        let sum = (low & prime) + (high << 3 | low >> 61)
        return sum >= prime ? sum - prime : sum
    }
}
