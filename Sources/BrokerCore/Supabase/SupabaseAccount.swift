public import SupabaseAuth

/// What the configuration says of an account at a Supabase project.
public struct SupabaseAccount: Sendable, Equatable {
    /// The app's own row about the person: the one of `table` whose `key` is the user's identifier.
    public struct Profile: Sendable, Equatable {
        public let table: String
        public let key: String

        public init(table: String, key: String) {
            self.table = table
            self.key = key
        }
    }

    public var project: SupabaseProject
    /// A callback by custom scheme carries no flow key.
    public var isKeyless: Bool
    /// Whose page a browser is sent to, where the sign-in names none.
    public var oauthProvider: String?
    /// An ID token without a nonce is taken: it could be another sign-in's.
    public var allowsMissingNonce: Bool
    /// The account whose ID token signs in here, where the sign-in hands none in.
    public var idTokenAccount: String?
    public var profile: Profile?
    /// The function that makes the row where there is none.
    public var profileFunction: String?
    /// The functions that callers may have called.
    public var functions: [String]

    public init(
        project: SupabaseProject, isKeyless: Bool = false, oauthProvider: String? = nil,
        allowsMissingNonce: Bool = false, idTokenAccount: String? = nil, profile: Profile? = nil,
        profileFunction: String? = nil, functions: [String] = []
    ) {
        self.project = project
        self.isKeyless = isKeyless
        self.oauthProvider = oauthProvider
        self.allowsMissingNonce = allowsMissingNonce
        self.idTokenAccount = idTokenAccount
        self.profile = profile
        self.profileFunction = profileFunction
        self.functions = functions
    }
}

extension Account {
    /// The project, where the account is at one.
    var project: SupabaseAccount? {
        if case .project(let project) = endpoints { project } else { nil }
    }
}
