internal import Cryptography
internal import Encodings
internal import Secrets
internal import StrictJSON

// Reads claims by type. A claim of the wrong type is an error and is not treated as absent. Otherwise a check could be
// skipped by sending the claim as another type. Null means absent, because some servers write null for missing values.

extension JSONObject {
    /// A claim's text; nil if it is absent. Throws `invalidIDToken` for another type.
    func text(_ claim: String) throws(OAuthError) -> String? {
        guard let value = self[claim], value != .null else { return nil }
        guard let text = value.string else { throw .invalidIDToken(claim: claim, reason: "not a string") }
        return text
    }

    /// A claim's time in whole Unix seconds (RFC 7519 section 2, NumericDate); nil if it is absent. Fractions are
    /// dropped. Throws `invalidIDToken` for times before 1970 or after the year 9999: these are mistakes, mostly
    /// milliseconds, and such a token would never expire.
    func instant(_ claim: String) throws(OAuthError) -> Int? {
        let latest = 253_402_300_799
        let seconds: Int
        switch self[claim] {
        case nil, .null?: return nil
        case .integer(let value)?: seconds = value
        case .double(let value)? where value.isFinite && value >= 0 && value <= Double(latest): seconds = Int(value)
        case .double?: throw .invalidIDToken(claim: claim, reason: "not a valid time")
        default: throw .invalidIDToken(claim: claim, reason: "not a number")
        }
        guard (0...latest).contains(seconds) else {
            throw .invalidIDToken(claim: claim, reason: "not a valid time")
        }
        return seconds
    }

    /// The values of `aud`: one string or a list of strings, none of them empty. Throws `invalidIDToken`.
    func audience() throws(OAuthError) -> [String] {
        let values: [String]
        switch self["aud"] {
        case nil, .null?: throw .invalidIDToken(claim: "aud", reason: "missing")
        case .string(let text)?: values = [text]
        case .array(let elements)?:
            values = elements.compactMap(\.string)
            guard values.count == elements.count else {
                throw .invalidIDToken(claim: "aud", reason: "not a list of strings")
            }
        default: throw .invalidIDToken(claim: "aud", reason: "neither a string nor a list")
        }
        guard !values.isEmpty, values.allSatisfy({ !$0.isEmpty }) else {
            throw .invalidIDToken(claim: "aud", reason: "empty")
        }
        return values
    }
}

extension SignatureAlgorithm {
    /// The value of `at_hash` and `c_hash` (OpenID Connect Core section 3.1.3.6): the left half of the digest that the
    /// signature uses, which is SHA-512 for Ed25519.
    func halfHash(of secret: Secret) -> String {
        let digest =
            switch self {
            case .rs256, .ps256, .es256: Digest.sha256(secret)
            case .rs384, .ps384, .es384: Digest.sha384(secret)
            case .rs512, .ps512, .es512, .edDSA: Digest.sha512(secret)
            }
        return Base64URL.encode(digest.prefix(digest.count / 2))
    }
}

extension String {
    /// True for a valid `sub`: 1 to 255 bytes (OpenID Connect Core section 2) without control characters.
    var isSubject: Bool {
        (1...255).contains(utf8.count) && utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }
}
