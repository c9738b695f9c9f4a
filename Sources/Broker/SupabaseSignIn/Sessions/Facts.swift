public import BrokerCore
internal import OAuth
public import RingbackBase
public import SupabaseAuth

extension Session {
    /// The additional facts of a session at a Supabase project.
    public struct SupabaseFacts: Sendable, Equatable {
        /// The server's identifier of the session, the same in all its tokens.
        public var sessionID: String?
        /// The authenticator assurance level.
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

        /// The facts as the broker stores them.
        var attachment: SessionAttachment {
            var facts = JSONObject([.init("methods", .array(methods.map { .string($0) }))])
            facts["session_id"] = sessionID.map { .string($0) }
            facts["aal"] = assurance.map { .string($0.rawValue) }
            facts["migrates_from"] = migratesFrom.map { .string($0) }
            if isProved { facts["proved"] = true }
            return SessionAttachment(facts: facts, secrets: providerToken.map { ["provider_token": $0] } ?? [:])
        }
    }

    /// The facts of this kind of account; nil for a session of another kind.
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

    /// The session of a user who forgot the password and must choose a new one.
    var isRecovery: Bool { project?.methods.contains("recovery") == true }

    /// The assurance level that the user's factors require. A session below it needs a second factor.
    public var nextAssurance: AssuranceLevel? {
        guard project != nil else { return nil }
        return user.flatMap(SupabaseUser.init(reading:))?.nextAssurance ?? .aal1
    }
}

/// The facts of a session at a Supabase project that callers may see.
public struct SupabaseMembers: Sendable {
    /// The authenticator assurance level, `aal1` or `aal2`.
    public let assurance: String?
    /// The assurance level that the user's factors require.
    public let nextAssurance: String?
    /// The app's former identifier of this user, until the app has moved the user's data.
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
        var facts = JSONObject()
        facts["aal"] = assurance.map { .string($0) }
        facts["next_aal"] = nextAssurance.map { .string($0) }
        facts["migrates_from"] = migratesFrom.map { .string($0) }
        return SessionAttachment(facts: facts, secrets: providerToken.map { ["provider_token": $0] } ?? [:])
    }
}

extension IssuedToken {
    /// Nil for other kinds of accounts.
    public var supabase: SupabaseMembers? { shown.map { SupabaseMembers($0) } }
}

extension AccountView {
    /// The authenticator assurance level, `aal1` or `aal2`; nil for other kinds of accounts.
    public var assurance: String? { supabase?.assurance }
    /// The assurance level that the user's factors require.
    public var nextAssurance: String? { supabase?.nextAssurance }
    /// The app's former identifier of this user, until the app has moved the user's data.
    public var migratesFrom: String? { supabase?.migratesFrom }

    private var supabase: SupabaseMembers? { shown.map { SupabaseMembers($0) } }
}
