public import Cryptography
internal import HTTPMessages
public import OAuth
public import Secrets
public import StrictJSON

/// The authenticator assurance level of a session.
public enum AssuranceLevel: String, Sendable, Comparable {
    /// One factor.
    case aal1
    /// A second factor.
    case aal2

    public static func < (left: AssuranceLevel, right: AssuranceLevel) -> Bool { left == .aal1 && right == .aal2 }
}

/// The claims of an access token (a JWT of the Auth server).
public struct AccessTokenClaims: Sendable, Equatable {
    /// One way in which the user was authenticated.
    public struct Method: Sendable, Equatable {
        /// `password`, `otp`, `oauth`, `totp`, `recovery`, `token_refresh` ...
        public let name: String
        /// When, in Unix seconds; nil if an auth hook has written none.
        public let at: Int?
        /// The provider of a single sign-on.
        public let provider: String?
    }

    /// `sub`: the user's UUID.
    public let subject: String
    /// `session_id`.
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
    /// `aud`.
    public let audience: [String]
    public let role: String?
    public let isAnonymous: Bool
    /// All claims, as the server or an auth hook wrote them.
    public let all: JSONObject

    /// True if the user signed in with a recovery mail. In a PKCE flow only this claim shows it.
    public var isRecovery: Bool { methods.contains { $0.name == "recovery" } }

    /// Reads claims; nil without a valid `sub`.
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
        role = claims["role"]?.string
        isAnonymous = claims["is_anonymous"]?.bool ?? false
        all = claims
    }

    /// The claims of a token that came directly from the server. The signature is not verified. Nil if the token is not
    /// a JWT.
    public init?(unverified token: Secret) {
        guard let claims = CompactToken(token)?.payload else { return nil }
        self.init(claims)
    }

    /// True if both tokens belong to the same session of the same user. Needed to check an imported session after its
    /// refresh.
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
    /// Signed with a key that is not in the key set. Fetch the set again, once. If the key is still missing, ask the
    /// server.
    case keyMissing
    /// Signed with the project's secret or an unsupported algorithm. Ask the server with
    /// ``SupabaseProject/user(bearer:)`` and compare the user.
    case askServer
    /// Not a token of this project, or not valid: the claim, and the reason as a text of Ringback.
    case refused(claim: String, reason: String)

    /// The algorithms that the server uses.
    public static let algorithms: Set<SignatureAlgorithm> = [.es256, .es512, .rs256, .rs512, .edDSA]

    /// The allowed clock difference in seconds.
    public static let leeway = 120

    /// Checks a token with the project's keys. `now` is in Unix seconds; nil accepts an expired token, for an imported
    /// session that is refreshed at once.
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
    /// The issuer, in a form that is safe to show, if the token belongs to another project. Nil if it belongs to this
    /// one or has no issuer.
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
