internal import RingbackAPI
package import RingbackBase

/// What a tool sends to a server, by the table of origins. Its descriptions and reflection leave the token out.
public struct OriginCredential: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    public var account: String
    /// Lines of a request, such as `Authorization: Bearer …`.
    public var headers: [String]
    public var username: String?
    /// The token. Nil in the response to a rejection, and to a request without a token.
    public var secret: String?
    /// Nil where the provider states no lifetime.
    public var expiresAt: WallInstant?
    /// A sentence for the user, if the server refuses the account's tokens.
    public var warning: String?
    public var description: String { "OriginCredential(account: \(account))" }
    public var customMirror: Mirror { Mirror(self, children: ["account": account]) }

    package init(reading json: JSON) throws(RingbackError) {
        guard let account = json["account"]?.string, let lines = json["headers"]?.array else {
            throw .missing("headers", in: "response")
        }
        self.account = account
        headers = lines.compactMap(\.string)
        username = json["username"]?.string
        secret = json["secret"]?.string
        expiresAt = WallInstant(json["expires_at"])
        warning = json["warning"]?.string
    }
}

/// A tool's request for credentials of a server (`POST /v1/lookup`).
package struct OriginRequest: Sendable {
    package var url: String
    package var username: String?
    /// The SHA-256, in hexadecimal digits, of a token that the server refused.
    package var rejected: String?
    /// The tool does not say which token it sent.
    package var isGuess = false
    package var isInteractive = false
    /// Only whether there is a token is wanted.
    package var isWithoutToken = false
    /// Of the tool's request, if the tool sends a proof with a token that is bound to a key. With the server's last nonce.
    package var method: String?
    package var nonce: String?
    /// How the tool connects, where the origin has to allow that: members of the request.
    package var settings = JSONObject()
}

extension OriginRequest {
    package init(url: String) { self.init(url: url, username: nil) }
}

extension BrokerCalls {
    /// - Parameter onTick: called about once a second during a wait for a sign-in.
    package func lookup(
        _ request: OriginRequest, onTick: (() -> Void)? = nil
    ) throws(RingbackError) -> OriginCredential {
        var body = JSONObject([.init("url", .string(request.url))])
        body["username"] = request.username.map { .string($0) }
        body["rejected_sha256"] = request.rejected.map { .string($0) }
        if request.isGuess { body["rejected_is_guess"] = true }
        if request.isInteractive { body["interactive"] = true }
        if request.isWithoutToken { body["without_token"] = true }
        body["method"] = request.method.map { .string($0) }
        body["nonce"] = request.nonce.map { .string($0) }
        for setting in request.settings.members { body[setting.name] = setting.value }
        // The daemon limits the wait itself. The seconds beyond that are for a daemon that hangs.
        let limit: Duration = request.isInteractive ? .seconds(125) : .seconds(35)
        return try OriginCredential(reading: try call(.lookup, body: .object(body), timeout: limit, onTick: onTick))
    }
}

extension BrokerClient {
    /// The credential for a server that the table of origins in the configuration lists. `url` is where the app
    /// connects to, with its path; `username` is the user name that the app was told. If there is no session and
    /// `waitsForSignIn`, the daemon starts or joins a sign-in and waits for it, two minutes at most. Throws `not_found`
    /// if no origin fits; otherwise as ``session(_:minValid:timeout:scope:audience:resource:subject:signIn:)``.
    public func credential(
        for url: String, username: String? = nil, waitsForSignIn: Bool = false
    ) async throws(RingbackError) -> OriginCredential {
        let request = OriginRequest(url: url, username: username, isInteractive: waitsForSignIn)
        return try await run { calls throws(RingbackError) in try calls.lookup(request) }
    }

    /// Reports that the server refused the token with this SHA-256 in hexadecimal digits: the next lookup gets another
    /// one. Returns the account, with a warning if the server refused two tokens in a row.
    @discardableResult
    public func rejectCredential(
        for url: String, username: String? = nil, sha256 digest: String
    ) async throws(RingbackError) -> OriginCredential {
        let request = OriginRequest(url: url, username: username, rejected: digest)
        return try await run { calls throws(RingbackError) in try calls.lookup(request) }
    }
}

/// What a caller may ask of a session (`GET …/session`).
package struct SessionRequest: Sendable {
    package var account: String?
    package var issuer: String?
    package var minValid: Int?
    package var timeout: Int?
    package var scope: String?
    package var audience: String?
    package var resource: String?
    /// Nil for an access token.
    package var kind: TokenKind?
    package var subject: String?
    package var include: String?
    /// If signed out, start or join a sign-in and wait for it, no longer than `timeout`.
    package var waitsForSignIn = false
}

extension SessionRequest {
    package init(account: String?) { self.init(account: account, issuer: nil) }
}

extension BrokerCalls {
    /// - Parameter onTick: as of ``lookup(_:onTick:)``.
    package func session(_ request: SessionRequest, onTick: (() -> Void)? = nil) throws(RingbackError) -> JSON {
        let endpoint: Endpoint = request.account == nil ? .getSessionByIssuer : .getSession
        var target = try RequestTarget(endpoint, request.account.map { [$0] } ?? [])
        target.add("issuer", request.issuer)
        target.add("min_valid", request.minValid.map(String.init))
        target.add("timeout", request.timeout.map(String.init))
        target.add("scope", request.scope)
        target.add("audience", request.audience)
        target.add("resource", request.resource)
        target.add("kind", request.kind?.rawValue)
        target.add("subject", request.subject)
        target.add("include", request.include)
        if request.waitsForSignIn { target.add("sign_in", "wait") }
        do throws(RingbackError) {
            // The daemon limits the wait itself (600 s at most). The seconds beyond that are for a daemon that hangs.
            let limit: Duration = .seconds(min(max(request.timeout ?? 30, 0), 600) + 5)
            return try call(endpoint, at: target, timeout: limit, onTick: onTick)
        } catch {
            // A restricted socket serves the token without the user, so the user is read from the account.
            guard error.kind == .policyDenied, request.include == "user" else { throw error }
            var rest = request
            rest.include = nil
            var answer = try session(rest).object ?? JSONObject()
            if let name = answer["account"]?.string { answer["user"] = (try? account(name))?["user"] }
            return .object(answer)
        }
    }
}
