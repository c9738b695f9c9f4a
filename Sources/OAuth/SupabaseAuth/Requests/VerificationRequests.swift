public import HTTPMessages
public import Secrets
internal import StrictJSON

/// Requests that redeem a typed code or the hash from a mail's link. They need neither a PKCE verifier nor a redirect.
extension SupabaseProject {
    /// What a code or a hash was sent for.
    public enum Purpose: String, Sendable {
        case signUp = "signup"
        case invite
        case recovery
        case magicLink = "magiclink"
        case emailChange = "email_change"
        /// The code of a sign-up or a magic link.
        case email
        case sms
        case phoneChange = "phone_change"

        fileprivate var isForPhone: Bool { self == .sms || self == .phoneChange }
    }

    /// Redeems a typed code; the response is a ``SessionResponse``. `contact` is where it was sent: for a change, the
    /// new address or number. Throws for `type` if it does not fit the contact.
    public func verify(_ code: OneTimeCode, for purpose: Purpose, of contact: Contact) throws(FieldError) -> HTTPRequest
    {
        switch contact {
        case .email where !purpose.isForPhone, .phone where purpose.isForPhone: break
        default:
            throw FieldError(field: "type", reason: "\(purpose.rawValue) does not belong to this kind of address")
        }
        var body = JSONObject(["type": .string(purpose.rawValue), "token": .secret(code.digits)])
        body.set(contact)
        return request("POST", "/verify", body: body)
    }

    /// Redeems the hash from the link of a mail. Hashes for PKCE (`pkce_…`) are accepted too. Throws for `type` and
    /// `token_hash`.
    public func verify(tokenHash: Secret, for purpose: Purpose) throws(FieldError) -> HTTPRequest {
        guard !purpose.isForPhone else {
            throw FieldError(field: "type", reason: "\(purpose.rawValue) has no token_hash")
        }
        guard tokenHash.count <= 512, PlainText.isToken(tokenHash.revealed()) else {
            throw FieldError(field: "token_hash", reason: "not the hash of a link")
        }
        return request(
            "POST", "/verify",
            body: JSONObject(["type": .string(purpose.rawValue), "token_hash": .secret(tokenHash)]))
    }
}
