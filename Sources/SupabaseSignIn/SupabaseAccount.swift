public import BrokerCore
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

extension SupabaseAccount: AccountKind {
    public func provider(of account: Account, with tools: ProviderTools) -> any SignInProvider {
        SupabaseProvider(account: account, rules: self, http: tools.http, keySets: tools.memory(), clock: tools.clock)
    }

    public func binding(of account: Account) -> SessionBinding {
        SessionBinding(provider: project.authURL, clientID: account.clientID)
    }

    public func issuer(of account: Account) -> String? { project.issuer }

    /// A project has one token for everything: another one than was asked for would be a lie.
    public func check(_ query: SessionQuery, of account: Account) throws(BrokerError) {
        guard query.key == .own else {
            throw .methodUnsupported("\(account.name) is at a Supabase project, whose tokens cannot be narrowed.")
        }
        guard query.kind == .accessToken else {
            throw .methodUnsupported("\(account.name) is at a Supabase project, which gives no ID tokens.")
        }
    }

    public func shown(of session: Session) -> SessionAttachment? {
        session.project.map { SupabaseMembers($0, session.nextAssurance).attachment }
    }

    public func observer(with tools: ProviderTools) -> (any SessionObserver)? {
        SupabaseObserver(
            identities: IdentityObserver(vault: tools.vault, record: tools.record), profiles: tools.memory())
    }
}

extension Account {
    /// The project, where the account is at one.
    var project: SupabaseAccount? { kind as? SupabaseAccount }
}
