public import HTTPMessages
public import Secrets
public import StrictJSON

/// Changes that a user makes to its own data; nil members are not changed.
public struct UserChanges: Sendable, Equatable {
    /// Pending until it is confirmed. The project may require confirmation at both addresses.
    public var email: EmailAddress?
    /// Pending until its code is verified.
    public var phone: PhoneNumber?
    /// A new password ends all other sessions of the user.
    public var password: Secret?
    /// Needed if the project requires it.
    public var currentPassword: Secret?
    /// The code of ``SupabaseProject/reauthentication(bearer:)``, needed to change the password in an older session.
    public var nonce: Secret?
    /// Merged into `user_metadata`; a member with null is removed.
    public var data: JSONObject?
    /// The channel for the code to a new number.
    public var channel: MessageChannel?

    /// Creates an empty change.
    public init() {}

    /// True if nothing is changed.
    public var isEmpty: Bool { email == nil && phone == nil && password == nil && data == nil }

    /// True if the address or number is changed, which needs a confirmation.
    public var hasContacts: Bool { email != nil || phone != nil }

    /// Only the changes of address and number, without secrets.
    public var contacts: UserChanges {
        var changes = UserChanges()
        changes.email = email
        changes.phone = phone
        changes.channel = channel
        return changes
    }

    /// All changes except those of address and number.
    public var withoutContacts: UserChanges {
        var changes = self
        changes.email = nil
        changes.phone = nil
        changes.channel = nil
        return changes
    }
}

/// Which sessions a sign-out ends.
public enum SignOutScope: String, Sendable {
    /// This session.
    case local
    /// Every session of the user.
    case global
    /// Every session but this one.
    case others
}

/// Requests of a user about itself. All need its access token.
extension SupabaseProject {
    /// Requests the user. This also shows whether an access token is still valid, because the server looks up the
    /// session.
    public func user(bearer: Secret) -> HTTPRequest { request("GET", "/user", bearer: bearer) }

    /// Changes the user; the response is a ``SupabaseUser``. The claims of the access token change with the next
    /// refresh. `link` is used only for a new e-mail address. Throws for `password` and `current_password`, and for
    /// `data` if nothing is changed.
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

    /// Requests that the code for ``UserChanges/nonce`` is sent; the response is a ``MessageResponse``.
    public func reauthentication(bearer: Secret) -> HTTPRequest { request("GET", "/reauthenticate", bearer: bearer) }

    /// Ends sessions; the response is a ``SignOutResponse``. Issued access tokens are accepted by the project's tables
    /// until they expire.
    public func signOut(_ scope: SignOutScope, bearer: Secret) -> HTTPRequest {
        request("POST", "/logout", query: [("scope", scope.rawValue)], bearer: bearer)
    }

    /// Removes an identity from the user. `identityID` is ``Identity/identityID``, not the provider's subject. Throws
    /// for `id`.
    public func removeIdentity(_ identityID: String, bearer: Secret) throws(FieldError) -> HTTPRequest {
        guard PlainText.isUUID(identityID) else { throw FieldError(field: "id", reason: "not a UUID") }
        return request("DELETE", "/user/identities/\(identityID)", bearer: bearer)
    }
}
