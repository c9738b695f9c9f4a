internal import Cryptography
internal import Encodings
internal import OAuth
public import Secrets
internal import StrictJSON

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
    /// The upstream provider's access token. It is sent only after a browser flow, not after a refresh, so it is stored
    /// separately.
    public let providerToken: Secret?
    /// The upstream provider's refresh token, sent like the access token. It never leaves the daemon.
    public let providerRefreshToken: Secret?
    /// The user; nil if the response has none.
    public let user: SupabaseUser?
    /// Why the password is too weak although the sign-in succeeded: `length`, `characters`, `pwned`. Empty if it is not
    /// weak.
    public let weaknesses: [String]

    init(_ tokens: TokenSet, _ object: JSONObject) throws(SupabaseError) {
        guard let claims = AccessTokenClaims(unverified: tokens.accessToken) else {
            throw .invalid(reason: "an access_token that is not a token of the Auth server")
        }
        user = object["user"]?.object.flatMap(SupabaseUser.init(reading:))
        // Attack or error: without this check, callers would get the token of one user with the data of another.
        guard user.map({ $0.id == claims.subject }) ?? true else {
            throw .invalid(reason: "an access_token of another user than in the response")
        }
        self.claims = claims
        accessToken = tokens.accessToken
        expiresIn = tokens.expiresIn
        expiresAt = SupabaseSession.instant(object["expires_at"])
        refreshToken = tokens.refreshToken
        providerToken = PlainText.token(object["provider_token"])
        providerRefreshToken = PlainText.token(object["provider_refresh_token"])
        weaknesses = object["weak_password"]?["reasons"]?.array?.compactMap { PlainText.code($0.string) } ?? []
    }

    /// The access token's lifetime in seconds from the response on. `expires_in` has priority, because it needs no
    /// clock. Then the token's `exp` and `iat` are used, which are both by the server's clock; then `expires_at` and
    /// our clock `now`.
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

/// The form of a refresh token. The server may change it with any refresh, so it is only used for explanations.
public enum RefreshTokenForm: Sendable, Equatable {
    /// Twelve characters; the server stores each token.
    case v1
    /// Contains the session and a counter, signed.
    case v2(sessionID: String, counter: Int)
    /// An unknown form.
    case other

    /// Parses a token.
    public init(of token: Secret) {
        let text = token.revealed()
        let isShort =
            text.utf8.count == 12
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) }
        if isShort {
            self = .v1
        } else {
            self = RefreshTokenForm.signed(text) ?? .other
        }
    }

    /// A zero byte, the session's UUID, the counter in groups of seven bits, 16 bytes of MAC and 4 bytes of checksum.
    private static func signed(_ text: String) -> RefreshTokenForm? {
        guard text.utf8.count >= 51, let bytes = Base64URL.decode(text), bytes.count >= 38, bytes[0] == 0,
            Digest.sha256(bytes.dropLast(4)).prefix(4).elementsEqual(bytes.suffix(4))
        else { return nil }
        var counter = 0
        var shift = 0
        let groups = bytes[17..<(bytes.count - 20)]
        for (index, byte) in groups.enumerated() {
            guard shift < 56 else { return nil }
            counter |= Int(byte & 0x7F) << shift
            shift += 7
            guard (byte & 0x80 == 0) == (index == groups.count - 1) else { return nil }
        }
        return .v2(sessionID: uuid(bytes[1..<17]), counter: counter)
    }

    private static func uuid(_ bytes: ArraySlice<UInt8>) -> String {
        let digits = Digest.hex(bytes)
        var text = ""
        for (index, digit) in digits.enumerated() {
            if [8, 12, 16, 20].contains(index) { text.append("-") }
            text.append(digit)
        }
        return text
    }
}
