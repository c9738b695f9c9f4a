import HTTPMessages
import MCPBridge
import OAuth

/// The head of a server's response as a program of an exposed socket gets it.
enum RestrictedHead {
    static func make(
        _ status: Int, _ fields: HTTPFields, _ access: TokenDesk.Access, _ response: inout RestrictedResponse,
        _ refused: RefusedTokens
    ) -> RelayHead {
        var head = response.head(
            status: status, contentType: fields["content-type"], session: fields["mcp-session-id"],
            retryAfter: fields["retry-after"])
        if status == 401 {
            refused.add(access.digest)
            head.token = access.digest
        }
        if let location = fields["location"] {
            head.movesSlash = RedirectRule.allows(status, from: access.server.url, to: location)
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
