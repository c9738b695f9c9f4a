public import Cryptography
public import OAuth
public import RingbackBase

/// A checked session of the Auth server: its tokens are usable and belong to one user.
public struct SupabaseSession: Sendable, Equatable {
    public let accessToken: Secret
    /// The claims of the access token, not verified, see ``AccessTokenCheck``.
    public let claims: AccessTokenClaims
    /// Seconds, 1 to one year; nil if it is not stated.
    public let expiresIn: Int?
    /// Unix seconds by the server's clock; nil on very old servers.
    public let expiresAt: Int?
    /// Nil only in responses of unusual servers; the previous token then remains valid.
    public let refreshToken: Secret?
    /// The upstream provider's access token: sent only after a browser flow, not after a refresh, so stored separately.
    public let providerToken: Secret?
    public let user: SupabaseUser?

    init(_ tokens: TokenSet, _ object: JSONObject) throws(SupabaseError) {
        guard let claims = AccessTokenClaims(unverified: tokens.accessToken) else {
            throw .invalid(reason: "an access_token that is not a token of the Auth server")
        }
        user = object["user"]?.object.flatMap(SupabaseUser.init(reading:))
        // Otherwise callers would get the token of one user with the data of another.
        guard user.map({ $0.id == claims.subject }) ?? true else {
            throw .invalid(reason: "an access_token of another user than in the response")
        }
        self.claims = claims
        accessToken = tokens.accessToken
        expiresIn = tokens.expiresIn
        expiresAt = SupabaseSession.instant(object["expires_at"])
        refreshToken = tokens.refreshToken
        providerToken = PlainText.token(object["provider_token"])
    }

    /// In seconds. `expires_in` has priority, because it needs no clock. Then the token's `exp` and `iat` are used,
    /// which are both by the server's clock; then `expires_at` and our clock `now`.
    public func lifetime(now: Int) -> Int? {
        if let expiresIn { return expiresIn }
        let end = expiresAt ?? claims.expiresAt
        guard let end, case let seconds = end - (claims.issuedAt ?? now), seconds > 0 else { return nil }
        return min(seconds, SupabaseSession.longest)
    }

    /// A year in seconds; longer lifetimes are reduced to it.
    private static let longest = 31_536_000

    /// A number or a quoted number of the years 1970 to 9999.
    private static func instant(_ value: JSON?) -> Int? {
        let seconds = value?.integer ?? value?.string.flatMap { Int($0) }
        return seconds.flatMap { (0...253_402_300_799).contains($0) ? $0 : nil }
    }
}

/// A response with a session. The first step finds the refresh token, which may be a rotated one, as in
/// ``TokenResponse``: it must be stored durably before anything else in the response can fail. The second step checks
/// the rest.
public struct SessionResponse: SupabaseResponse {
    public enum Outcome: Sendable, Equatable {
        case session(SupabaseSession)
        /// A user without a session: a sign-up that must be confirmed.
        case user(SupabaseUser)
        /// The first of two confirmations of an e-mail change. The server's message.
        case accepted(message: String?)
    }

    /// With only its characters checked; nil if there is none.
    public let refreshToken: Secret?
    private let result: Result<Outcome, SupabaseError>

    /// The first step. For a success it never throws once a refresh token was found.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        guard (200..<300).contains(response.status) else {
            refreshToken = (try? TokenResponse(reading: response))?.refreshToken
            let error = ErrorReading.error(response)
            guard refreshToken != nil else { throw error }
            result = .failure(error)
            return
        }
        let tokens: TokenResponse
        do {
            tokens = try TokenResponse(reading: response)
        } catch {
            throw SessionResponse.meaning(of: error, response)
        }
        refreshToken = tokens.refreshToken
        result = SessionResponse.outcome(tokens, response)
        // There is no token that could be lost, so a malformed response is reported at once.
        if refreshToken == nil, case .failure(let error) = result { throw error }
    }

    /// The second step. Throws if the content cannot be used.
    public func outcome() throws(SupabaseError) -> Outcome { try result.get() }

    /// The second step, if only a session is acceptable.
    public func session() throws(SupabaseError) -> SupabaseSession {
        guard case .session(let session) = try result.get() else {
            throw .invalid(reason: "no access_token although a session was expected")
        }
        return session
    }

    private static func meaning(of error: OAuthError, _ response: HTTPResponse) -> SupabaseError {
        switch error {
        case .invalid(_, let reason): .invalid(reason: reason)
        case .unavailable(_, let status, let seconds): .unavailable(status: status, retryAfter: seconds)
        case .failing(let errorResponse, let seconds): .unavailable(status: errorResponse.status, retryAfter: seconds)
        default: .invalid(reason: "an error in a successful response (HTTP \(response.status))")
        }
    }

    private static func outcome(_ tokens: TokenResponse, _ response: HTTPResponse) -> Result<Outcome, SupabaseError> {
        Result { () throws(SupabaseError) in
            let object = try ErrorReading.object(response)
            guard object["access_token"] == nil || object["access_token"] == .null, tokens.refreshToken == nil else {
                return .session(try session(tokens, object))
            }
            if let user = SupabaseUser(reading: object) { return .user(user) }
            // As in `{"code": "200", "msg": "Confirmation link accepted. …"}`; `code` is a number in other versions.
            guard let message = object["msg"]?.string ?? object["message"]?.string else {
                throw .invalid(reason: "neither a session nor a user")
            }
            return .accepted(message: PlainText.message(message))
        }
    }

    private static func session(_ tokens: TokenResponse, _ object: JSONObject) throws(SupabaseError) -> SupabaseSession
    {
        let set: TokenSet
        do {
            set = try tokens.tokenSet()
        } catch {
            if case .invalid(_, let reason) = error { throw .invalid(reason: reason) }
            throw .invalid(reason: "a response that is not a session")
        }
        return try SupabaseSession(set, object)
    }
}

/// The authenticator assurance level of a session.
public enum AssuranceLevel: String, Sendable, Comparable {
    /// One factor.
    case aal1
    /// With a second factor.
    case aal2
    public static func < (left: AssuranceLevel, right: AssuranceLevel) -> Bool { left == .aal1 && right == .aal2 }
}

/// The claims of an access token (a JWT of the Auth server).
public struct AccessTokenClaims: Sendable, Equatable {
    /// A way in which the user was authenticated.
    public struct Method: Sendable, Equatable {
        /// `password`, `otp`, `oauth`, `totp`, `recovery`, `token_refresh` ...
        public let name: String
        /// When, in Unix seconds; nil if an auth hook has written none.
        public let at: Int?
        /// The provider of a single sign-on.
        public let provider: String?
    }

    /// The user's UUID.
    public let subject: String
    public let sessionID: String?
    /// `aal`; nil if it is another value.
    public let assurance: AssuranceLevel?
    /// `amr`, newest first.
    public let methods: [Method]
    /// `exp` in Unix seconds.
    public let expiresAt: Int?
    /// `iat` in Unix seconds.
    public let issuedAt: Int?
    /// `iss`; nil if the server sets none.
    public let issuer: String?
    public let audience: [String]
    /// True if the user signed in with a recovery mail. In a PKCE flow only this claim shows it.
    public var isRecovery: Bool { methods.contains { $0.name == "recovery" } }

    /// Nil without a valid `sub`.
    public init?(_ claims: JSONObject) {
        guard let subject = claims["sub"]?.string, (1...255).contains(subject.utf8.count),
            subject.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return nil }
        self.subject = subject
        sessionID = claims["session_id"]?.string.flatMap { $0.isEmpty ? nil : $0 }
        assurance = claims["aal"]?.string.flatMap(AssuranceLevel.init(rawValue:))
        methods = claims["amr"]?.array?.compactMap(Method.init(reading:)) ?? []
        expiresAt = AccessTokenClaims.instant(claims["exp"])
        issuedAt = AccessTokenClaims.instant(claims["iat"])
        issuer = claims["iss"]?.string.flatMap { $0.isEmpty ? nil : $0 }
        audience = claims["aud"]?.string.map { [$0] } ?? claims["aud"]?.array?.compactMap(\.string) ?? []
    }

    /// Of a token that came directly from the server. Nil if the token is not a JWT.
    public init?(unverified token: Secret) {
        guard let claims = CompactToken(token)?.payload else { return nil }
        self.init(claims)
    }

    /// Needed to check an imported session after its refresh.
    public func isSameSession(as other: AccessTokenClaims) -> Bool {
        sessionID != nil && subject.utf8.elementsEqual(other.subject.utf8) && sessionID == other.sessionID
    }

    /// Whole Unix seconds of the years 1970 to 9999; fractions are dropped.
    private static func instant(_ value: JSON?) -> Int? {
        switch value {
        case .integer(let seconds)? where (0...latest).contains(seconds): seconds
        case .double(let seconds)? where seconds >= 0 && seconds <= Double(latest): Int(seconds)
        default: nil
        }
    }

    private static let latest = 253_402_300_799
}

extension AccessTokenClaims.Method {
    /// Reads an object, or a plain string as some auth hooks write.
    init?(reading value: JSON) {
        if let name = value.string {
            self.init(name: name, at: nil, provider: nil)
        } else if let name = value["method"]?.string {
            self.init(name: name, at: value["timestamp"]?.integer, provider: value["provider"]?.string)
        } else {
            return nil
        }
    }
}

/// The result of checking whether an access token belongs to the project.
public enum AccessTokenCheck: Sendable, Equatable {
    /// The signature and all claims are valid.
    case verified(AccessTokenClaims)
    /// Signed with a key that is not in the set. Fetch the set again, once. If the key is still missing, ask the
    /// server.
    case keyMissing
    /// Signed with the project's secret or an unsupported algorithm: compare the user that the server names.
    case askServer
    /// Not a token of this project, or not valid. The reason is ours.
    case refused(claim: String, reason: String)
    /// The algorithms that the server uses.
    public static let algorithms: Set<SignatureAlgorithm> = [.es256, .es512, .rs256, .rs512, .edDSA]
    /// In seconds.
    public static let leeway = 120

    /// `now` is in Unix seconds; nil accepts an expired token, for an imported session that is refreshed at once.
    public init(_ token: Secret, keys: JSONWebKeySet, project: SupabaseProject, now: Int?) {
        guard let plain = CompactToken(token) else {
            self = .refused(claim: "token", reason: "not a signed token")
            return
        }
        let name = plain.header["alg"]?.string ?? ""
        guard name.utf8.count > 0, name.lowercased() != "none" else {
            self = .refused(claim: "alg", reason: "not signed")
            return
        }
        var verdict = AccessTokenCheck.askServer
        if let algorithm = SignatureAlgorithm(rawValue: name), AccessTokenCheck.algorithms.contains(algorithm) {
            verdict = AccessTokenCheck.verify(token, keys, project, now)
        }
        if verdict == .askServer || verdict == .keyMissing {
            // The claims must fit in any case, whoever verifies the signature.
            guard let claims = AccessTokenClaims(plain.payload) else {
                self = .refused(claim: "sub", reason: "missing")
                return
            }
            verdict = claims.flaw(for: project, now: now) ?? verdict
        }
        self = verdict
    }

    private static func verify(
        _ token: Secret, _ keys: JSONWebKeySet, _ project: SupabaseProject, _ now: Int?
    ) -> AccessTokenCheck {
        do {
            let signature = try JSONWebSignature(parsing: token)
            if signature.isKeyMissing(in: keys) { return .keyMissing }
            let payload = try signature.verify(with: keys, allowed: algorithms)
            guard let claims = AccessTokenClaims(payload) else { return .refused(claim: "sub", reason: "missing") }
            return claims.flaw(for: project, now: now) ?? .verified(claims)
        } catch {
            return .refused(claim: error.part, reason: error.reason)
        }
    }
}

extension AccessTokenClaims {
    /// In a form that is safe to show, if the token belongs to another project.
    public func foreignIssuer(to project: SupabaseProject) -> String? {
        guard let issuer, !issuer.utf8.elementsEqual(project.issuer.utf8) else { return nil }
        guard issuer.utf8.count <= 255, (try? WebURL(parsing: issuer)) != nil else { return "not a URL" }
        return issuer
    }

    /// The first invalid claim; nil if all are valid.
    fileprivate func flaw(for project: SupabaseProject, now: Int?) -> AccessTokenCheck? {
        guard audience.contains("authenticated") else { return .refused(claim: "aud", reason: "not for users") }
        if foreignIssuer(to: project) != nil { return .refused(claim: "iss", reason: "another project") }
        guard let expiresAt else { return .refused(claim: "exp", reason: "missing") }
        if let now, now >= expiresAt + AccessTokenCheck.leeway { return .refused(claim: "exp", reason: "expired") }
        return nil
    }
}
