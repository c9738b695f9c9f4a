public import BrokerCore

/// Why something at a Supabase project was not done, as a fact. The broker carries it and does not read it.
public enum SupabaseReason: KindReason, Equatable {
    // MARK: Accounts

    /// Nil for an account whose name is not known here.
    case notSupabase(AccountName?)
    case noDownscopedTokens(AccountName)
    case noIDTokens(AccountName)
    /// The configuration lists the functions that may be called.
    case functionNotListed(AccountName, listed: [String])
    /// The data of another user, who had the identifier, wait to be moved.
    case migrationPending(String)

    // MARK: Responses

    /// `cause` is the end of a sentence.
    case invalidResponse(cause: String)
    case invalidResponseOfHost(String, cause: String)
    case keyNotAccepted(host: String)
    /// The URL or the key belongs to no running project. `cause` is the whole text.
    case unusableProject(cause: String)
    case otherSession(host: String)
    case unusableKeys(host: String, status: Int)
    /// `cause` is the end of a sentence.
    case invalidToken(host: String, claim: String, cause: TokenFault)
    case foreignIssuer(AccountName, issuer: String, expected: String)
    case tokenOfOtherUser(host: String)
    case noUsableIDToken(AccountName)

    /// What is wrong with an access token.
    public enum TokenFault: Sendable, Equatable {
        case keyNotPublished
        /// The server rejects it. `code` is the server's, checked.
        case rejected(code: String?)
        /// The end of a sentence.
        case other(String)
    }

    // MARK: What a check found: the rest of a sentence that begins with the host

    case keyNotAcceptedHere(status: Int)
    case noSupabaseHere(status: Int)
    case supabaseHere
    /// The project's name of a provider.
    case methodNotEnabled(String)

    // MARK: Flows

    /// Too many callbacks without a key had another flow's code.
    case tooManyWrongCallbacks
    case keylessError
    /// The server wants another step; `message` is its text, checked.
    case anotherStep(message: String)
    /// The callback went to a URL that the project knows, since it does not know the flow's. `listed` is what to add to
    /// its list.
    case redirectNotListed(AccountName, origin: String, redirectURI: String, listed: String)
    case codeOfOtherFlow
    case malformedCallback
    /// The callback has tokens in its URL (implicit flow).
    case carriesTokens
    /// The server's text, checked: it came instead of a code.
    case message(String)
    case noCodeAwaited
    case noPasskeyAwaited
    /// The page's sign-in is another user's. The flow goes on.
    case signedInAsOther
    case expired(AccountName, isChange: Bool, seconds: Int, Awaited)

    /// What a flow waited for in vain.
    public enum Awaited: Sendable, Equatable {
        case account(AccountName)
        case passkey
        case code
        case page
        /// `listed` is what to add to the project's list of redirect URLs.
        case callback(redirectURI: String, listed: String?)
    }

    // MARK: Members of a request

    case missing
    /// What is wrong with a field. `cause` is the end of a sentence that begins with the field's name.
    case field(cause: String)
    case oneMessageOnly
    case fromAccountOrIDToken
    case nameNeedsIDToken
    case notAnotherAccount
    case accountWithoutIDTokens(AccountName)
    case noIDTokenAccount(AccountName)
    case noOAuthProvider(AccountName)
    case domainOrProviderID
    case linkNeedsEmail
    case noNonce
    case dataOrUser
    case noMessageSent
    case unknownFactor
    case identifierSize
    case notThisProjectsToken
    case tokenOfOtherProject(AccountName, issuer: String, expected: String)
    case tokensOfTwoSessions
}

extension Reason {
    static func supabase(_ reason: SupabaseReason) -> Reason { .kind(KindFact(reason)) }
}
