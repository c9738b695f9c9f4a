public import BrokerCore
internal import RingbackBase

/// Why a request concerning a Supabase project failed, as a fact that code or a test decides by.
public enum SupabaseReason: KindReason, Equatable {
    /// The account is not at a Supabase project. Nil if the code that throws does not know the account's name.
    case notSupabase(AccountName?)
    /// The function is not among those that the configuration allows by `key`, which are `listed`.
    case functionNotListed(AccountName, key: String, listed: [String])
    /// `cause` is the end of a sentence.
    case invalidToken(host: String, claim: String, cause: TokenFault)

    /// What is wrong with an access token.
    public enum TokenFault: Sendable, Equatable {
        case keyNotPublished
        /// The server rejects it. `code` is the server's, checked.
        case rejected(code: String?)
        /// The end of a sentence.
        case other(String)

        fileprivate var words: String {
            switch self {
            case .keyNotPublished: "signed with a key that is not published"
            case .rejected(let code): "its server rejects it with “\(code ?? "no code")”"
            case .other(let cause): cause
            }
        }
    }

    case carriesTokens
    case expired(AccountName, isChange: Bool, seconds: Int, Awaited)

    /// What an expired flow was waiting for.
    public enum Awaited: Sendable, Equatable {
        case account(AccountName)
        case passkey
        case code
        case page
        /// `listed` is what to add to the project's list of redirect URLs.
        case callback(redirectURI: String, listed: String?)

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

    public var sentence: String {
        switch self {
        case .notSupabase(let name): "\(name?.rawValue ?? "This account") is not at a Supabase project."
        case .functionNotListed(let name, let key, let listed):
            "it is not in the list \(key) of the account \(name)"
                + (listed.isEmpty ? ", which is empty" : ": \(listed.joined(separator: ", "))")
        case .invalidToken(let host, let claim, let cause):
            "The access token of \(host) is not valid (\(claim)): \(cause.words)."
        case .carriesTokens:
            "The callback carries tokens (implicit flow), which is not accepted, because they were exposed. "
                + "The sign-in must be started with PKCE, as Ringback does, and not by another program or a link "
                + "of the dashboard."
        case .expired(let name, let isChange, let seconds, let awaited):
            "\(isChange ? "The change of the user of" : "The sign-in of") \(name) was not finished within "
                + "\(Language.english.span(seconds)). Waited for \(awaited.words)"
        }
    }
}

extension Reason {
    static let noCodeAwaited = Reason.stated("This sign-in does not wait for a code.")

    static func supabase(_ reason: SupabaseReason) -> Reason { .kind(KindFact(reason)) }
}
