import Adapters
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// A token that `ringback token` prints, with what the formats write beside it.
struct PrintedToken {
    /// A line of a request.
    struct Field {
        let name: String
        let value: String
    }

    private enum Source {
        /// The daemon's response to a request for an account's session, and the member that is the token.
        case session(JSON, member: String)
        /// What the table of origins gave for a URL.
        case origin(OriginCredential, WebURL)
    }

    private let source: Source

    /// - Parameter kind: nil is the access token.
    init(session: JSON, kind: TokenKind?) {
        source = .session(session, member: (kind ?? .accessToken).rawValue)
    }

    init(_ credential: OriginCredential, for url: WebURL) { source = .origin(credential, url) }

    /// The token, of bytes from 0x21 to 0x7E.
    var token: String {
        get throws(RingbackError) {
            let token: String?
            let member: String
            switch source {
            case .session(let answer, let name): (token, member) = (answer[name]?.string, name)
            case .origin(let credential, _): (token, member) = (credential.secret, "secret")
            }
            guard let token, !token.isEmpty else {
                throw RingbackError(.badResponse, "The daemon's response has no “\(member)”.")
            }
            guard PrintedToken.isVisible(token) else {
                throw RingbackError(
                    .badResponse, "The token has characters that are not allowed in a token; it is not shown.")
            }
            return token
        }
    }

    /// The daemon's response.
    var json: JSON {
        switch source {
        case .session(let answer, _): return answer
        case .origin(let credential, _):
            var object = JSONObject([
                .init("account", .string(credential.account)),
                .init("headers", .array(credential.headers.map { .string($0) })),
            ])
            object["username"] = credential.username.map { .string($0) }
            object["secret"] = credential.secret.map { .string($0) }
            object["expires_at"] = credential.expiresAt.map { .integer($0.secondsSince1970) }
            object["warning"] = credential.warning.map { .string($0) }
            return .object(object)
        }
    }

    /// The lines of a request with the token.
    func fields() throws(RingbackError) -> [Field] {
        switch source {
        case .session(let answer, _):
            let type = answer["token_type"]?.string ?? "Bearer"
            guard PrintedToken.isVisible(type) else {
                throw RingbackError(.badResponse, "The token's type has characters that no type has.")
            }
            return [
                Field(name: "Authorization", value: "\(type.lowercased() == "bearer" ? "Bearer" : type) \(try token)")
            ]
        case .origin(let credential, _):
            var fields: [Field] = []
            for line in credential.headers {
                guard let end = line.firstRange(of: ": "), line.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) else {
                    throw RingbackError(.badResponse, "The daemon's response has a header that is not one.")
                }
                fields.append(Field(name: String(line[..<end.lowerBound]), value: String(line[end.upperBound...])))
            }
            return fields
        }
    }

    /// The name by which the user signs in to a mail server.
    func user(for mechanism: String) throws(RingbackError) -> String {
        switch source {
        case .session(let answer, _):
            let address = answer["user"]?["email"]?.string ?? answer["subject"]?.string ?? ""
            guard address.contains("@"), PrintedToken.isName(address) else {
                throw RingbackError(
                    .badResponse, "\(mechanism) needs the account's mail address, and the provider names none.")
            }
            return address
        case .origin(let credential, _):
            guard let name = credential.username, PrintedToken.isName(name) else {
                throw RingbackError(
                    "no_username",
                    "\(mechanism) needs a user name without blanks and control characters: set username in the origin.")
            }
            return name
        }
    }

    /// A line of a netrc file. A name or token with a character that the readers of such files understand in different
    /// ways is refused: a quote or a backslash, or a number sign at the start.
    func netrc() throws(RingbackError) -> String {
        guard case .origin(let credential, let url) = source, let host = url.host else {
            throw RingbackError(ExitStatus.usageKind, "The format netrc needs the server's URL: --origin URL.")
        }
        let token = try token
        do throws(TokenLine.Failure) {
            // The name that GitLab, Gitea and Forgejo know for tokens.
            return try TokenLine.netrc(host: host, user: credential.username ?? "oauth2", token: token)
        } catch {
            throw RingbackError(.badResponse, error.reason)
        }
    }

    /// True for text of bytes from 0x21 to 0x7E.
    private static func isVisible(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    /// True for visible characters without blanks, in any script: SASL's names are UTF-8.
    private static func isName(_ text: String) -> Bool {
        !text.isEmpty && text.unicodeScalars.allSatisfy { Sanitizer.isVisible($0) && $0 != " " }
    }
}
