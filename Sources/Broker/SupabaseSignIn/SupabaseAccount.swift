public import BrokerCore
internal import RingbackBase
public import SupabaseAuth

public struct SupabaseAccount: Sendable, Equatable {
    /// The app's own row about the user: the row of `table` whose column `key` is the user's identifier.
    public struct Profile: Sendable, Equatable {
        public let table: String
        public let key: String

        public init(table: String, key: String) {
            self.table = table
            self.key = key
        }
    }

    public var project: SupabaseProject
    /// Callbacks by custom scheme have no flow key.
    public var isKeyless: Bool
    /// The upstream provider if the sign-in names none.
    public var oauthProvider: String?
    /// True if an ID token without a nonce is accepted. Such a token may come from another sign-in.
    public var allowsMissingNonce: Bool
    /// The account whose ID token is used if the sign-in has none.
    public var idTokenAccount: String?
    public var profile: Profile?
    /// The function that creates the row if there is none.
    public var profileFunction: String?
    /// The functions of the database that callers may call.
    public var functions: [String]
    public var edgeFunctions: [String]

    public init(
        project: SupabaseProject, isKeyless: Bool = false, oauthProvider: String? = nil,
        allowsMissingNonce: Bool = false, idTokenAccount: String? = nil, profile: Profile? = nil,
        profileFunction: String? = nil, functions: [String] = [], edgeFunctions: [String] = []
    ) {
        self.project = project
        self.isKeyless = isKeyless
        self.oauthProvider = oauthProvider
        self.allowsMissingNonce = allowsMissingNonce
        self.idTokenAccount = idTokenAccount
        self.profile = profile
        self.profileFunction = profileFunction
        self.functions = functions
        self.edgeFunctions = edgeFunctions
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

    public func check(_ query: SessionQuery, of account: Account) throws(BrokerError) {
        guard query.key != .own || query.kind == .idToken else { return }
        let missing = query.key != .own ? "has no downscoped tokens" : "issues no ID tokens"
        throw .methodUnsupported(.stated("\(account.name) is at a Supabase project, which \(missing)."))
    }

    public func shown(of session: Session) -> SessionAttachment? {
        session.project.map { SupabaseMembers($0, session.nextAssurance).attachment }
    }

    public func observer(with tools: ProviderTools) -> (any SessionObserver)? {
        SupabaseObserver(vault: tools.vault, record: tools.record, profiles: tools.memory())
    }
}

extension Account {
    var project: SupabaseAccount? { kind as? SupabaseAccount }
}
