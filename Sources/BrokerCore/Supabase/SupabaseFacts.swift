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
        /// Not to be written to the disk: it goes with the daemon.
        public var isEphemeral = false
        /// One of its tokens was checked, by the project's keys or by its server.
        public var isProved = false
        /// The sign-out that the server is still to be told of ends the user's other sessions, too.
        public var endsAll = false

        init(_ claims: AccessTokenClaims) {
            sessionID = claims.sessionID
            assurance = claims.assurance
            methods = claims.methods.map(\.name)
        }

        init(
            sessionID: String?, assurance: AssuranceLevel?, methods: [String], providerToken: Secret?, endsAll: Bool
        ) {
            self.sessionID = sessionID
            self.assurance = assurance
            self.methods = methods
            self.providerToken = providerToken
            self.endsAll = endsAll
        }
    }

    /// Nothing of it is to be on the disk.
    var isEphemeral: Bool { project?.isEphemeral == true || isOfService }

    /// The sign-out that the provider is still to be told of ends the user's other sessions, too. Only a Supabase project
    /// can be told that.
    var endsAll: Bool {
        get { project?.endsAll ?? false }
        set { project?.endsAll = newValue }
    }

    /// Its person had forgotten the password and is to choose another one.
    var isRecovery: Bool { project?.methods.contains("recovery") == true }

    /// The level that the user's factors ask for: a session below it does not look complete.
    public var nextAssurance: AssuranceLevel? {
        guard project != nil else { return nil }
        return user.flatMap(SupabaseUser.init(reading:))?.nextAssurance ?? .aal1
    }
}

extension SessionRecord {
    static func encode(_ facts: Session.SupabaseFacts) -> JSONObject {
        var object = JSONObject([.init("methods", .array(facts.methods.map { .string($0) }))])
        object["session_id"] = facts.sessionID.map { .string($0) }
        object["aal"] = facts.assurance.map { .string($0.rawValue) }
        object["provider_token"] = facts.providerToken.map { .string($0.revealed()) }
        object["migrates_from"] = facts.migratesFrom.map { .string($0) }
        if facts.endsAll { object["ends_all"] = true }
        if facts.isProved { object["proved"] = true }
        return object
    }

    static func decodeFacts(_ object: JSONObject) -> Session.SupabaseFacts {
        var facts = Session.SupabaseFacts(
            sessionID: object["session_id"]?.string,
            assurance: object["aal"]?.string.flatMap(AssuranceLevel.init(rawValue:)),
            methods: object["methods"]?.array?.compactMap(\.string) ?? [],
            providerToken: object["provider_token"]?.string.map { Secret($0) },
            endsAll: object["ends_all"]?.bool ?? false)
        facts.migratesFrom = object["migrates_from"]?.string
        facts.isProved = object["proved"]?.bool ?? false
        return facts
    }
}
