internal import BrokerCore
internal import OAuth
internal import Secrets
internal import StrictJSON

/// The claims of ID tokens and userinfo that a session keeps.
extension Session {
    /// The claims that are shown to users, and `sub`.
    private static let shownClaims = [
        "sub", "email", "email_verified", "name", "preferred_username", "given_name", "family_name", "nickname",
        "picture", "locale", "phone_number", "phone_number_verified",
    ]

    static func user(from claims: JSONObject, _ more: JSONObject) -> JSONObject {
        JSONObject(
            shownClaims.compactMap { name in
                (more[name] ?? claims[name]).map { JSONObject.Member(name, $0) }
            })
    }

    mutating func adopt(_ verified: IDToken, _ token: Secret, by clock: BrokerClock) {
        subject = verified.subject
        user = Session.user(from: user ?? JSONObject(), verified.claims)
        identity = Identity(
            token: token, expiry: Deadline(at: WallInstant(seconds: verified.expiresAt), by: clock),
            lifetime: verified.expiresAt > verified.issuedAt ? .seconds(verified.expiresAt - verified.issuedAt) : nil,
            audience: verified.audience.sorted(),
            authenticationTime: verified.authenticationTime.map { WallInstant(seconds: $0) }
                ?? identity?.authenticationTime,
            authorizedParty: verified.authorizedParty,
            nonce: verified.claims["nonce"]?.string.map { Secret($0) } ?? identity?.nonce, issuer: verified.issuer,
            nonceSource: identity?.nonceSource)
    }
}
