public import StrictJSON

/// A user of a project, read tolerantly: only its identifier must be there. What is not known is kept.
public struct SupabaseUser: Sendable, Equatable {
    /// The user's UUID: the subject of the session.
    public let id: String
    /// Nil where the user has none.
    public let email: String?
    /// With its plus sign, whatever the server stores; nil where the user has none.
    public let phone: String?
    /// Waits for its confirmation.
    public let newEmail: String?
    /// Waits for its code, with its plus sign.
    public let newPhone: String?
    /// Empty for the stranger that the server invents where an address is taken already.
    public let role: String
    public let isAnonymous: Bool
    /// Written by the server: `provider`, `providers`, and what the project adds.
    public let appMetadata: JSONObject
    /// Written by the user, its providers and its apps.
    public let userMetadata: JSONObject
    /// Nil where the answer does not say: the server writes null for none loaded.
    public let identities: [Identity]?
    public let factors: [Factor]
    private let document: JSONObject
    /// Each change of them is recorded, and nobody has so many: a project that says otherwise would fill the records.
    static let mostIdentities = 64

    /// Reads a user document, the server's or one of ours (``json``); nil without an `id`.
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

    /// The level a session can reach: `aal2` where the user has a verified factor.
    public var nextAssurance: AssuranceLevel { factors.contains { $0.isVerified } ? .aal2 : .aal1 }

    /// True if the address is confirmed.
    public var isEmailConfirmed: Bool { document.word("email_confirmed_at") != nil }

    /// True for the answer to a sign-up with an address that has a user already, which the server does not say.
    public var isStandIn: Bool { identities?.isEmpty ?? false }

    /// What the person is called, where a provider or the person said so.
    public var name: String? {
        let whole = ["full_name", "name", "display_name", "preferred_username", "user_name"].lazy.compactMap {
            userMetadata.word($0)
        }
        let parts = [userMetadata.word("given_name"), userMetadata.word("family_name")].compactMap { $0 }
        return whole.first ?? (parts.isEmpty ? nil : parts.joined(separator: " "))
    }

    /// The user as the socket shows it: the server's document, with phone numbers as people write them, `name`, and
    /// without what lets somebody sign in or belongs to the server alone.
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

    /// Members of the answers to administrators, and of the server's table of users, that never belong in an answer to
    /// a user: should one come, it stops here.
    private static func isPrivate(_ name: String) -> Bool {
        name.hasSuffix("token") || name.hasSuffix("password") || name.hasSuffix("_otp") || name.hasSuffix("secret")
            || name == "action_link" || name == "verification_type"
    }

    /// The server stores digits; one that is written with its plus sign stays as it is.
    static func outward(_ phone: String) -> String { phone.hasPrefix("+") ? phone : "+\(phone)" }

    public static func == (left: SupabaseUser, right: SupabaseUser) -> Bool { left.document == right.document }
}

extension JSONObject {
    /// A text with something in it: the server writes an empty one for none.
    func word(_ name: String) -> String? { self[name]?.string.flatMap { $0.isEmpty ? nil : $0 } }
}
