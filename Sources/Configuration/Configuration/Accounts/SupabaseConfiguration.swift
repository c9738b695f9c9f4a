public import SupabaseAuth

/// The Supabase settings of an account.
public struct SupabaseConfiguration: Sendable, Equatable {
    /// The project's URL and publishable key.
    public let project: SupabaseProject
    /// False if a callback with a custom scheme has no flow key (for exact allow lists).
    public let callbackCarriesFlowKey: Bool
    /// The default provider of browser sign-ins.
    public let oauthProvider: String?
    /// True if ID tokens without a nonce are accepted.
    public let allowsMissingNonce: Bool
    /// The account whose ID token is used for a sign-in whose request contains no ID token.
    public let idTokenAccount: String?
    /// The table with the app's own rows about users.
    public let profileTable: String?
    /// The column with the user's id.
    public let profileKey: String
    /// The function that creates a missing row.
    public let profileFunction: String?
    /// The database functions that callers may call.
    public let functions: [String]
}
