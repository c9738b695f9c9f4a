import HTTPMessages
import MCPBridge
import OAuth

/// The head of a server's response as a program of an exposed socket gets it.
enum RestrictedHead {
    static func make(
        _ status: Int, _ fields: HTTPFields, _ sent: TokenDesk.Sent, _ response: inout RestrictedResponse,
        _ refused: RefusedTokens
    ) -> RelayHead {
        var head = response.head(
            status: status, contentType: fields["content-type"], session: fields["mcp-session-id"],
            retryAfter: fields["retry-after"])
        if status == 401 {
            if let token = sent.token { refused.add(token) }
            head.token = sent.token
        }
        if let location = fields["location"] {
            head.movesSlash = RedirectRule.allows(status, from: sent.url, to: location)
        }
        if status == 403, let challenge = BearerChallenge(in: fields), challenge.demandsScopes {
            let scope = challenge.scopes.joined(separator: " ")
            head.missingScope = response.allows(text: scope) ? scope : ""
        }
        return head
    }
}

/// The SHA-256 of tokens that the server refused here. A program can have only those refreshed.
final class RefusedTokens {
    private var digests: [String] = []
    private static let most = 16

    func add(_ digest: String) {
        guard !digests.contains(digest) else { return }
        digests.append(digest)
        if digests.count > RefusedTokens.most { digests.removeFirst() }
    }

    func contains(_ digest: String) -> Bool { digests.contains(digest) }
}

/// What the server's lists of tools say of the fields that repeat parameters, of all conversations of the socket.
final class LearnedTools {
    private(set) var parameters = ToolParameters()

    func learn(from lists: [[UInt8]]) {
        for list in lists { parameters.learn(from: list) }
    }
}
