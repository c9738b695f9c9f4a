public import HTTPMessages
public import Secrets
public import StrictJSON

/// Changes that a user makes to itself; nil members stay as they are.
public struct UserChanges: Sendable, Equatable {
    /// Pending until it is confirmed, by both addresses where the project wants it.
    public var email: EmailAddress?
    /// Pending until its code is verified.
    public var phone: PhoneNumber?
    /// Ends all other sessions of the user.
    public var password: Secret?
    /// Where the project asks for it.
    public var currentPassword: Secret?
    /// The code of ``SupabaseProject/reauthentication(bearer:)``, where the session is too old to change a password.
    public var nonce: Secret?
    /// Merged into `user_metadata`; a member that is null is removed there.
    public var data: JSONObject?
    /// For the code to a new number.
    public var channel: MessageChannel?

    /// No changes yet.
    public init() {}

    /// True if there is nothing to change.
    public var isEmpty: Bool { email == nil && phone == nil && password == nil && data == nil }

    /// True if an address or a number is to become another one, which waits for its code.
    public var hasContacts: Bool { email != nil || phone != nil }

    /// The address and the number alone, without anything secret.
    public var contacts: UserChanges {
        var changes = UserChanges()
        changes.email = email
        changes.phone = phone
        changes.channel = channel
        return changes
    }

    /// Everything but the address and the number.
    public var withoutContacts: UserChanges {
        var changes = self
        changes.email = nil
        changes.phone = nil
        changes.channel = nil
        return changes
    }
}

/// How far a sign-out reaches.
public enum SignOutScope: String, Sendable {
    /// This session.
    case local
    /// Every session of the user.
    case global
    /// Every session but this one.
    case others
}

/// Requests that a user makes about itself: all with its access token.
extension SupabaseProject {
    /// The user. Also the way to ask whether an access token is still good: the server looks the session up.
    public func user(bearer: Secret) -> HTTPRequest { request("GET", "/user", bearer: bearer) }

    /// Changes the user; the answer is a ``SupabaseUser``, the access token's claims follow at the next refresh. The
    /// link counts for a new e-mail address alone. Throws for `password` and for changes without any.
    public func update(_ changes: UserChanges, link: MailLink = .none, bearer: Secret) throws(FieldError) -> HTTPRequest
    {
        guard !changes.isEmpty else { throw FieldError(field: "data", reason: "there is nothing to change") }
        if let password = changes.password { try PasswordRule.check(password, isNew: true) }
        if let password = changes.currentPassword, password.count > PasswordRule.maxBytes {
            throw FieldError(field: "current_password", reason: "longer than \(PasswordRule.maxBytes) bytes")
        }
        var body = JSONObject([
            "email": .optional(changes.email?.text), "phone": .optional(changes.phone?.digits),
            "password": changes.password.map { .secret($0) },
            "current_password": changes.currentPassword.map { .secret($0) },
            "nonce": changes.nonce.map { .secret($0) }, "data": changes.data.map { .object($0) },
            "channel": .optional(changes.channel?.rawValue),
        ])
        if changes.email != nil { body.set(challenge: link.challenge) }
        let query = SupabaseProject.query(redirectTo: changes.email == nil ? nil : link.redirectTo)
        return request("PUT", "/user", query: query, body: body, bearer: bearer)
    }

    /// Sends the code for ``UserChanges/nonce``; the answer is a ``MessageResponse``.
    public func reauthentication(bearer: Secret) -> HTTPRequest { request("GET", "/reauthenticate", bearer: bearer) }

    /// Ends sessions; the answer is a ``SignOutResponse``. Access tokens handed out stay valid for the tables until they
    /// expire.
    public func signOut(_ scope: SignOutScope, bearer: Secret) -> HTTPRequest {
        request("POST", "/logout", query: [("scope", scope.rawValue)], bearer: bearer)
    }

    /// Takes an identity from the user. `identityID` is ``Identity/identityID``, not the provider's subject. Throws for
    /// `id`.
    public func removeIdentity(_ identityID: String, bearer: Secret) throws(FieldError) -> HTTPRequest {
        guard PlainText.isUUID(identityID) else { throw FieldError(field: "id", reason: "not a UUID") }
        return request("DELETE", "/user/identities/\(identityID)", bearer: bearer)
    }
}
