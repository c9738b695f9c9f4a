public import StrictJSON

/// A user of a project. Only its id is required; unknown members are kept.
public struct SupabaseUser: Sendable, Equatable {
    /// The user's UUID, which is the subject of the session.
    public let id: String
    /// Nil if the user has none.
    public let email: String?
    /// With a plus sign, although the server stores it without; nil if the user has none.
    public let phone: String?
    /// A new address that is not confirmed yet.
    public let newEmail: String?
    /// A new number whose code was not entered yet, with a plus sign.
    public let newPhone: String?
    /// Empty for the invented user of a sign-up with an existing address.
    public let role: String
    public let isAnonymous: Bool
    /// Written by the server: `provider`, `providers`, and members of the project.
    public let appMetadata: JSONObject
    /// Written by the user, its providers and its apps.
    public let userMetadata: JSONObject
    /// Nil if the response does not contain the identities; the server then sends null.
    public let identities: [Identity]?
    public let factors: [Factor]
    private let document: JSONObject
    /// The maximum number of identities. Each change is recorded, and a malicious project could otherwise fill the
    /// records.
    static let mostIdentities = 64

    /// Reads a user document of the server or one of ours (``json``); nil without a valid `id`.
    public init?(reading document: JSONObject) {
        guard let id = document["id"]?.string, (1...255).contains(id.utf8.count),
            id.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return nil }
        self.id = id
        email = document.word("email")
        phone = document.word("phone").map(SupabaseUser.outward)
        newEmail = document.word("new_email")
        newPhone = document.word("new_phone").map(SupabaseUser.outward)
        role = document["role"]?.string ?? ""
        isAnonymous = document["is_anonymous"]?.bool ?? false
        appMetadata = document["app_metadata"]?.object ?? JSONObject()
        userMetadata = document["user_metadata"]?.object ?? JSONObject()
        identities = document["identities"]?.array?.prefix(SupabaseUser.mostIdentities).compactMap {
            $0.object.flatMap(Identity.init(reading:))
        }
        factors = document["factors"]?.array?.compactMap { $0.object.flatMap(Factor.init(reading:)) } ?? []
        self.document = document
    }

    /// The highest level that a session can reach: `aal2` if the user has a verified factor.
    public var nextAssurance: AssuranceLevel { factors.contains { $0.isVerified } ? .aal2 : .aal1 }

    /// True if the e-mail address is confirmed.
    public var isEmailConfirmed: Bool { document.word("email_confirmed_at") != nil }

    /// True for the invented user that the server returns for a sign-up with an address that belongs to an existing
    /// user.
    public var isStandIn: Bool { identities?.isEmpty ?? false }

    /// The user's name, if it is known.
    public var name: String? {
        let whole = ["full_name", "name", "display_name", "preferred_username", "user_name"].lazy.compactMap {
            userMetadata.word($0)
        }
        let parts = [userMetadata.word("given_name"), userMetadata.word("family_name")].compactMap { $0 }
        return whole.first ?? (parts.isEmpty ? nil : parts.joined(separator: " "))
    }

    /// The user in the socket API's form: the server's document with plus signs in phone numbers and with `name`,
    /// without secrets and without members that are internal to the server.
    public var json: JSONObject {
        var json = JSONObject(document.members.filter { !SupabaseUser.isPrivate($0.name) && $0.value != .null })
        for name in ["email", "phone", "new_email", "new_phone", "role"] where document[name]?.string == "" {
            json[name] = nil
        }
        if let phone { json["phone"] = .string(phone) }
        if let newPhone { json["new_phone"] = .string(newPhone) }
        if let name { json["name"] = .string(name) }
        json["identities"] = identities.map { .array($0.map { .object($0.json) }) }
        if document["factors"] != nil { json["factors"] = .array(factors.map { .object($0.json) }) }
        return json
    }

    /// True for members that are only in responses to administrators or in the server's table of users. They must never
    /// be passed on, even if a response contains them.
    private static func isPrivate(_ name: String) -> Bool {
        name.hasSuffix("token") || name.hasSuffix("password") || name.hasSuffix("_otp") || name.hasSuffix("secret")
            || name == "action_link" || name == "verification_type"
    }

    /// Adds a plus sign, unless there is one.
    static func outward(_ phone: String) -> String { phone.hasPrefix("+") ? phone : "+\(phone)" }

    public static func == (left: SupabaseUser, right: SupabaseUser) -> Bool { left.document == right.document }
}

extension JSONObject {
    /// A member's text; nil if it is missing or empty. The server sends an empty text for a missing value.
    func word(_ name: String) -> String? { self[name]?.string.flatMap { $0.isEmpty ? nil : $0 } }
}
