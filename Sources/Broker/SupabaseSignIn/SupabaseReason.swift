public import BrokerCore

/// Why a request concerning a Supabase project failed, as data without sentences. The broker passes it on unread.
public enum SupabaseReason: KindReason, Equatable {
    // MARK: Accounts

    /// The account is not at a Supabase project. Nil if the code that throws does not know the account's name.
    case notSupabase(AccountName?)
    case noDownscopedTokens(AccountName)
    case noIDTokens(AccountName)
    /// The function is not among those that the configuration allows, which are `listed`.
    case functionNotListed(AccountName, listed: [String])
    /// The session has this other former identifier, whose data the app has not moved yet.
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
    /// The server requires another step. `message` is the server's text, checked.
    case anotherStep(message: String)
    /// The project's list of redirect URLs lacks the flow's redirect URI, so the server sent the browser to another URL
    /// of the project, at `origin`. `listed` is the entry to add to the list.
    case redirectNotListed(AccountName, origin: String, redirectURI: String, listed: String)
    case codeOfOtherFlow
    case malformedCallback
    /// The callback has tokens in its URL (implicit flow).
    case carriesTokens
    /// The callback has a message instead of a code: the server's text, checked.
    case message(String)
    case noCodeAwaited
    case noPasskeyAwaited
    /// Another user than the account's signed in on the page. The session was discarded, and the flow goes on.
    case signedInAsOther
    case expired(AccountName, isChange: Bool, seconds: Int, Awaited)

    /// What an expired flow was waiting for.
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
