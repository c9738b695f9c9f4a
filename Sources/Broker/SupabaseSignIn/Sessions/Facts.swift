public import BrokerCore
internal import OAuth
public import RingbackBase
public import SupabaseAuth

extension Session {
    /// The additional facts of a session at a Supabase project.
    public struct SupabaseFacts: Sendable, Equatable {
        /// The server's identifier of the session, the same in all its tokens.
        public var sessionID: String?
        public var assurance: AssuranceLevel?
        /// The methods by which the user was authenticated, newest first.
        public var methods: [String]
        /// The upstream provider's access token, if the sign-in asked for it. A refresh does not renew it.
        public var providerToken: Secret?
        /// The app's former identifier of this user, until the app reports that it has moved the user's data.
        public var migratesFrom: String?
        /// True if one of the session's access tokens was verified, by the project's keys or by its server.
        public var isProved = false

        init(_ claims: AccessTokenClaims) {
            sessionID = claims.sessionID
            assurance = claims.assurance
            methods = claims.methods.map(\.name)
        }

        init(_ attachment: SessionAttachment) {
            let facts = attachment.facts
            sessionID = facts["session_id"]?.string
            assurance = facts["aal"]?.string.flatMap(AssuranceLevel.init(rawValue:))
            methods = facts["methods"]?.array?.compactMap(\.string) ?? []
            // Older versions stored it among the facts.
            providerToken =
                attachment.secrets["provider_token"] ?? facts["provider_token"]?.string.map { Secret($0) }
            migratesFrom = facts["migrates_from"]?.string
            isProved = facts["proved"]?.bool ?? false
        }

        var attachment: SessionAttachment {
            let facts: JSONObject = [
                "methods": methods, "session_id": sessionID, "aal": assurance?.rawValue,
                "migrates_from": migratesFrom, "proved": isProved ? true : nil,
            ]
            return SessionAttachment(facts: facts, secrets: providerToken.map { ["provider_token": $0] } ?? [:])
        }
    }

    public var project: SupabaseFacts? {
        get { (attachments[Session.attachment] ?? attachments[Session.formerAttachment]).map(SupabaseFacts.init) }
        set {
            attachments[Session.formerAttachment] = nil
            attachments[Session.attachment] = newValue?.attachment
        }
    }

    private static let attachment = "supabase"
    /// The attachment's name in older versions.
    private static let formerAttachment = "project"

    var isRecovery: Bool { project?.methods.contains("recovery") == true }

    /// The assurance level that the user's factors require. A session below it needs a second factor.
    public var nextAssurance: AssuranceLevel? {
        guard project != nil else { return nil }
        return user.flatMap(SupabaseUser.init(reading:))?.nextAssurance ?? .aal1
    }
}

/// The facts of a session at a Supabase project that callers may see.
public struct SupabaseMembers: Sendable {
    public let assurance: String?
    public let nextAssurance: String?
    public let migratesFrom: String?
    /// The upstream provider's access token. A caller needs a separate permission for it.
    public let providerToken: Secret?

    init(_ facts: Session.SupabaseFacts, _ next: AssuranceLevel?) {
        assurance = facts.assurance?.rawValue
        nextAssurance = next?.rawValue
        migratesFrom = facts.migratesFrom
        providerToken = facts.providerToken
    }

    init(_ attachment: SessionAttachment) {
        assurance = attachment.facts["aal"]?.string
        nextAssurance = attachment.facts["next_aal"]?.string
        migratesFrom = attachment.facts["migrates_from"]?.string
        providerToken = attachment.secrets["provider_token"]
    }

    var attachment: SessionAttachment {
        SessionAttachment(
            facts: ["aal": assurance, "next_aal": nextAssurance, "migrates_from": migratesFrom],
            secrets: providerToken.map { ["provider_token": $0] } ?? [:])
    }
}

extension IssuedToken {
    public var supabase: SupabaseMembers? { shown.map { SupabaseMembers($0) } }
}

extension AccountView {
    /// `aal1` or `aal2`; nil for other kinds of accounts.
    public var assurance: String? { supabase?.assurance }
    public var nextAssurance: String? { supabase?.nextAssurance }
    public var migratesFrom: String? { supabase?.migratesFrom }
    private var supabase: SupabaseMembers? { shown.map { SupabaseMembers($0) } }
}
