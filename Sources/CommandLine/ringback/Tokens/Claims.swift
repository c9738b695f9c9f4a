import ArgumentParser
import RingbackBase
import RingbackClient
import Terminal

struct Claims: DaemonVerb, AccountNaming {
    static let configuration = CommandConfiguration(
        abstract: "Print the claims of an account's access token.",
        discussion: """
            The token is decoded on this machine, and neither the token nor its signature is printed. This command does \
            not check the signature. Without ACCOUNT it is the only account, else the default account (see ringback use).
            """)

    @Argument(help: "The account.", completion: Completions.accounts) var account: String?
    @OptionGroup var choice: SessionOptions
    @Option(help: "access_token or id_token.") var kind: TokenKind?
    @Flag(help: "Sign in first if necessary.") var signIn = false
    @OptionGroup var options: CallOptions

    mutating func run() throws {
        let name = try AccountChoice.name(account, for: "claims", daemon)
        account = name
        var wanted = TokenOptions()
        wanted.request = choice.request(name)
        wanted.request.kind = kind
        wanted.socket = daemon.socket
        wanted.signsIn = signIn
        // A token that is bound to a key (DPoP) is decoded too: its claims alone give no access.
        let token = try PrintedToken(session: TokenVerb.answer(wanted), kind: kind).token
        let claims = try payload(of: token, name)
        json.print(claims, or: Claims.indented(claims))
    }

    /// The payload of a signed token in compact serialization (RFC 7515 section 7.1).
    private func payload(of token: String, _ name: String) throws(RingbackError) -> JSON {
        let parts = token.split(separator: ".", maxSplits: 5, omittingEmptySubsequences: false)
        if parts.count == 3, let payload = Base64URL.decode(parts[1]).flatMap({ try? JSON(parsing: $0) }),
            payload.object != nil
        {
            return payload
        }
        let problem =
            switch parts.count {
            case 3: "has claims that cannot be read: its payload is not a valid JSON object."
            // RFC 7516 section 7.1.
            case 5: "is an encrypted JSON Web Token: only the server that it is for can read its claims."
            default: "is no JSON Web Token: it is opaque, and only its provider knows what it stands for."
            }
        let session = "See: \(shown: "ringback session \(name)")"
        let user = ", or, if there is an ID token: \(shown: "ringback claims \(name) --kind id_token")"
        throw RingbackError(
            "no_claims", "The \(kind == .idToken ? "ID token" : "access token") of \(name) \(problem)",
            advice: kind == .idToken ? session : session + user)
    }

    /// As ``JSON/visibleText``, with each member and element on a line of its own.
    private static func indented(_ value: JSON, margin: String = "") -> String {
        let inner = margin + "  "
        switch value {
        case .object(let object) where !object.members.isEmpty:
            let lines = object.members.map { member in
                "\(inner)\(JSON.string(member.name).visibleText): \(indented(member.value, margin: inner))"
            }
            return "{\n\(lines.joined(separator: ",\n"))\n\(margin)}"
        case .array(let elements) where !elements.isEmpty:
            let lines = elements.map { inner + indented($0, margin: inner) }
            return "[\n\(lines.joined(separator: ",\n"))\n\(margin)]"
        default: return value.visibleText
        }
    }
}
