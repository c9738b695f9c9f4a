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

extension SupabaseReason {
    public var sentence: String {
        switch self {
        case .notSupabase(let name): "\(name?.rawValue ?? "This account") is not at a Supabase project."
        case .noDownscopedTokens(let name): "\(name) is at a Supabase project, which has no downscoped tokens."
        case .noIDTokens(let name): "\(name) is at a Supabase project, which issues no ID tokens."
        case .functionNotListed(let name, let listed):
            "it is not among the functions of \(name) "
                + "(rpc = [\(listed.joined(separator: ", "))]); only functions in this list can be called"
        case .migrationPending(let former): "The data of \(former) waits to be moved already."
        case .invalidResponse(let cause): "The project's response is not valid: \(cause)."
        case .invalidResponseOfHost(let host, let cause): "The response of \(host) is not valid: \(cause)."
        case .keyNotAccepted(let host): "\(host) does not accept the project's URL or key."
        case .unusableProject(let cause): cause
        case .otherSession(let host): "The new tokens of \(host) belong to another session than before."
        case .unusableKeys(let host, let status): "The keys of \(host) cannot be used (HTTP \(status))."
        case .invalidToken(let host, let claim, let cause):
            "The access token of \(host) is not valid (\(claim)): \(cause.words)."
        case .foreignIssuer(let name, let issuer, let expected):
            "The access token's issuer is \(issuer), not \(expected). "
                + "If it is this project's, set it as token_issuer of \(name)."
        case .tokenOfOtherUser(let host): "The user of the access token is not the user that \(host) reports."
        case .noUsableIDToken(let name): "\(name) has no ID token that the project can check."
        case .keyNotAcceptedHere(let status): "does not accept the api_key (HTTP \(status))"
        case .noSupabaseHere(let status): "is not a Supabase Auth server (HTTP \(status))"
        case .supabaseHere: "is a Supabase Auth server"
        case .methodNotEnabled(let word): "is a Supabase Auth server, where sign-in with \(word) is not enabled"
        case .tooManyWrongCallbacks: "Too many callbacks of this sign-in had a code of another one. Start it again."
        case .keylessError:
            "This error has no flow key, so it may belong to another sign-in. Nothing was changed."
        case .anotherStep(let message): "Another step is needed: \(message)"
        case .redirectNotListed(let name, let origin, let redirectURI, let listed):
            "It ended at \(origin), but the sign-in of \(name) asked for \(redirectURI). "
                + "The project does not know that URL. Add this to its redirect URLs, then sign in again: \(listed)"
        case .codeOfOtherFlow: "Its code belongs to another sign-in or was used before."
        case .malformedCallback: "The callback is not a well-formed response of Supabase Auth."
        case .carriesTokens:
            "The callback carries tokens (implicit flow), which is not accepted, because they were exposed. "
                + "The sign-in must be started with PKCE, as Ringback does, and not by another program or a link "
                + "of the dashboard."
        case .message(let text): text
        case .noCodeAwaited: "This sign-in does not wait for a code."
        case .noPasskeyAwaited: "This sign-in does not wait for a passkey."
        case .signedInAsOther: "The account is signed in as another user. Nothing was changed."
        case .expired(let name, let isChange, let seconds, let awaited):
            "\(isChange ? "The change of the user of" : "The sign-in of") \(name) was not finished within "
                + "\(seconds) seconds. Waited for \(awaited.words)"
        case .missing: "missing"
        case .field(let cause): cause
        case .oneMessageOnly: "this flow sent only one message"
        case .fromAccountOrIDToken: "send either from_account or id_token, not both"
        case .nameNeedsIDToken: "a name is only accepted together with id_token"
        case .notAnotherAccount: "not the name of another account"
        case .accountWithoutIDTokens(let name): "\(name) has no ID tokens: no scope openid"
        case .noIDTokenAccount(let name):
            "missing, and \(name) has no id_token_account; pass a token, or name an account"
        case .noOAuthProvider(let name): "missing, and \(name) has none in its configuration"
        case .domainOrProviderID: "a domain or a provider_id is needed, and not both"
        case .linkNeedsEmail: "a link is sent to an e-mail address"
        case .noNonce:
            "an ID token without a nonce may be from another sign-in; send the raw nonce, or set "
                + "allow_missing_nonce for the account"
        case .dataOrUser: "data or user, not both"
        case .noMessageSent: "no message was sent"
        case .unknownFactor: "unknown"
        case .identifierSize: "an identifier of 1 to 255 bytes without control characters"
        case .notThisProjectsToken: "it is not an access token of this project"
        case .tokenOfOtherProject(let name, let issuer, let expected):
            "it belongs to another project: its issuer is \(issuer), not \(expected). Nothing was "
                + "sent or stored. If it is this project's, set it as token_issuer of \(name)"
        case .tokensOfTwoSessions:
            "it belongs to another session than the access token; nothing was stored, and it was used up"
        }
    }
}

extension SupabaseReason.Awaited {
    fileprivate var words: String {
        switch self {
        case .account(let name): "the sign-in of \(name)."
        case .passkey: "the response of a passkey."
        case .code: "the code that was sent."
        case .page: "the sign-in page."
        case .callback(let redirectURI, let listed):
            "a callback to \(redirectURI)."
                + (listed.map {
                    " If the browser went to another page, add this to the redirect URLs of the project: \($0)"
                } ?? "")
        }
    }
}

extension SupabaseReason.TokenFault {
    fileprivate var words: String {
        switch self {
        case .keyNotPublished: "signed with a key that is not published"
        case .rejected(let code): "its server rejects it with “\(code ?? "no code")”"
        case .other(let cause): cause
        }
    }
}

extension Reason {
    static func supabase(_ reason: SupabaseReason) -> Reason { .kind(KindFact(reason)) }
}
