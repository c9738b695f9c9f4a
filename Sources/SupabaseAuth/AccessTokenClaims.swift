public import Cryptography
internal import HTTPMessages
public import OAuth
public import Secrets
public import StrictJSON

/// How surely the person was recognized.
public enum AssuranceLevel: String, Sendable, Comparable {
    /// One factor.
    case aal1
    /// A second factor.
    case aal2

    public static func < (left: AssuranceLevel, right: AssuranceLevel) -> Bool { left == .aal1 && right == .aal2 }
}

/// What an access token says (a JWT of the Auth server's).
public struct AccessTokenClaims: Sendable, Equatable {
    /// A way in which the person was recognized.
    public struct Method: Sendable, Equatable {
        /// `password`, `otp`, `oauth`, `totp`, `recovery`, `token_refresh` ...
        public let name: String
        /// Unix seconds; nil where a hook wrote none.
        public let at: Int?
        /// Of a single sign-on.
        public let provider: String?
    }

    /// `sub`: the user's UUID.
    public let subject: String
    /// `session_id`.
    public let sessionID: String?
    /// `aal`; nil where it is none of the two.
    public let assurance: AssuranceLevel?
    /// `amr`, the newest first.
    public let methods: [Method]
    /// `exp` in Unix seconds.
    public let expiresAt: Int?
    /// `iat` in Unix seconds.
    public let issuedAt: Int?
    /// `iss`; nil on servers that set none.
    public let issuer: String?
    /// `aud`.
    public let audience: [String]
    public let role: String?
    public let isAnonymous: Bool
    /// Every claim, as the server or a hook wrote it.
    public let all: JSONObject

    /// True if the person came by a mail for a forgotten password: with PKCE only this tells.
    public var isRecovery: Bool { methods.contains { $0.name == "recovery" } }

    /// Reads claims; nil without a `sub` that can be one.
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

    /// What a token that came straight from the server says, without a look at its signature; nil if it is no token.
    public init?(unverified token: Secret) {
        guard let claims = CompactToken(token)?.payload else { return nil }
        self.init(claims)
    }

    /// True if both are of one user's one session: what a session handed in and its refreshed token must be.
    public func isSameSession(as other: AccessTokenClaims) -> Bool {
        sessionID != nil && subject.utf8.elementsEqual(other.subject.utf8) && sessionID == other.sessionID
    }

    /// Whole seconds of 1970 to 9999; fractions are cut.
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
    /// An object, or a plain string where a hook wrote one.
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

/// Whether an access token is the project's: by its published keys, or by asking the server.
public enum AccessTokenCheck: Sendable, Equatable {
    /// The project signed it, and it is good now.
    case verified(AccessTokenClaims)
    /// Signed by a key that is not in the set: fetch the set again, once, then ask the server.
    case keyMissing
    /// Signed with a secret that only the server has, or in a way that is not known here: ask with
    /// ``SupabaseProject/user(bearer:)``, and compare the user.
    case askServer
    /// Not the project's, or not good: the claim, and our own sentence.
    case refused(claim: String, reason: String)

    /// The algorithms that the server signs with.
    public static let algorithms: Set<SignatureAlgorithm> = [.es256, .es512, .rs256, .rs512, .edDSA]

    /// Seconds that clocks may differ.
    public static let leeway = 120

    /// Judges a token by the project's keys. `now` is in Unix seconds; nil lets an expired one pass, for a session that
    /// is handed in and refreshed at once.
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
            // Whoever signed it: what names another project is not this one's.
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
    /// The issuer, as it may be shown, of a token that is another project's; nil where it is this one's, or names none.
    public func foreignIssuer(to project: SupabaseProject) -> String? {
        guard let issuer, !issuer.utf8.elementsEqual(project.issuer.utf8) else { return nil }
        guard issuer.utf8.count <= 255, (try? WebURL(parsing: issuer)) != nil else { return "none that is a URL" }
        return issuer
    }

    /// The first claim that does not hold.
    fileprivate func flaw(for project: SupabaseProject, now: Int?) -> AccessTokenCheck? {
        guard audience.contains("authenticated") else { return .refused(claim: "aud", reason: "not for users") }
        if foreignIssuer(to: project) != nil { return .refused(claim: "iss", reason: "another project") }
        guard let expiresAt else { return .refused(claim: "exp", reason: "missing") }
        if let now, now >= expiresAt + AccessTokenCheck.leeway { return .refused(claim: "exp", reason: "expired") }
        return nil
    }
}
