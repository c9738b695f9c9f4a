public import BrokerCore
internal import OAuth
public import Secrets
internal import StrictJSON
public import SupabaseAuth

extension Session {
    /// What a session at a Supabase project has beside what every session has.
    public struct SupabaseFacts: Sendable, Equatable {
        /// The server's name of it, the same for all its tokens.
        public var sessionID: String?
        /// How surely the person was recognized.
        public var assurance: AssuranceLevel?
        /// The ways in which the person was recognized, the newest first.
        public var methods: [String]
        /// The upstream provider's access token, where the sign-in asked for it: a refresh brings no other one.
        public var providerToken: Secret?
        /// What the app called this person before, until it says that it has moved their data.
        public var migratesFrom: String?
        /// One of its tokens was checked, by the project's keys or by its server.
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
            // Older versions kept it among the facts.
            providerToken =
                attachment.secrets["provider_token"] ?? facts["provider_token"]?.string.map { Secret($0) }
            migratesFrom = facts["migrates_from"]?.string
            isProved = facts["proved"]?.bool ?? false
        }

        /// As the broker carries it.
        var attachment: SessionAttachment {
            var facts = JSONObject([.init("methods", .array(methods.map { .string($0) }))])
            facts["session_id"] = sessionID.map { .string($0) }
            facts["aal"] = assurance.map { .string($0.rawValue) }
            facts["migrates_from"] = migratesFrom.map { .string($0) }
            if isProved { facts["proved"] = true }
            return SessionAttachment(facts: facts, secrets: providerToken.map { ["provider_token": $0] } ?? [:])
        }
    }

    /// What is sealed for this kind of account; nil for a session of another kind.
    public var project: SupabaseFacts? {
        get { (attachments[Session.attachment] ?? attachments[Session.formerAttachment]).map(SupabaseFacts.init) }
        set {
            attachments[Session.formerAttachment] = nil
            attachments[Session.attachment] = newValue?.attachment
        }
    }

    private static let attachment = "supabase"
    /// As older versions called it.
    private static let formerAttachment = "project"

    /// Its person had forgotten the password and is to choose another one.
    var isRecovery: Bool { project?.methods.contains("recovery") == true }

    /// The level that the user's factors ask for: a session below it does not look complete.
    public var nextAssurance: AssuranceLevel? {
        guard project != nil else { return nil }
        return user.flatMap(SupabaseUser.init(reading:))?.nextAssurance ?? .aal1
    }
}

/// What callers may see of a session at a Supabase project.
public struct SupabaseMembers: Sendable {
    /// `aal1`, `aal2`: how surely the user was recognized.
    public let assurance: String?
    /// What the user's factors ask for.
    public let nextAssurance: String?
    /// What the app called this user before, until it has moved their data.
    public let migratesFrom: String?
    /// The upstream provider's access token; a caller needs a permission of its own for it.
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
    /// Nil at any other provider.
    public var supabase: SupabaseMembers? { shown.map { SupabaseMembers($0) } }
}

extension AccountView {
    /// `aal1`, `aal2`: how surely the user was recognized, where the provider says so.
    public var assurance: String? { supabase?.assurance }
    /// What the user's second factors ask for.
    public var nextAssurance: String? { supabase?.nextAssurance }
    /// What the app called this user before, until it has moved their data.
    public var migratesFrom: String? { supabase?.migratesFrom }

    private var supabase: SupabaseMembers? { shown.map { SupabaseMembers($0) } }
}
