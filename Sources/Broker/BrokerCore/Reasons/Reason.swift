public import SessionVault

/// Why a request was not done, or what a check found: never a token, a URL with a query or a body.
public indirect enum Reason: Sendable, Equatable {
    /// For the user: one sentence or more, or the end of one that begins with a field's name. Nothing decides by it.
    case stated(String)
    case flow(FlowReason)
    case session(SessionReason)
    case vault(VaultError)
    /// What a host does or is: the rest of a sentence.
    case host(String, Reason)
    /// Why no callback can arrive; nil if that is not known.
    case portUnusable(ListenerFailure?)
    case kind(KindFact)
    case both(Reason, Reason)
}

/// A fact that only the code for one kind of account knows. The broker carries it and does not read it.
public protocol KindReason: Sendable, Equatable {}

extension Equatable {
    func isSame(as other: Any) -> Bool { other as? Self == self }
}

/// A ``KindReason`` that can be compared.
public struct KindFact: Sendable, Equatable {
    public let reason: any KindReason

    public init(_ reason: any KindReason) { self.reason = reason }

    public static func == (left: KindFact, right: KindFact) -> Bool { left.reason.isSame(as: right.reason) }
}

extension Reason {
    static let callerDisconnected = Reason.stated("The caller disconnected.")
    static let endpointNotAllowed = Reason.stated("An endpoint is neither https nor http on a loopback address.")

    /// The server speaks TLS and the URL is an http URL, or the other way round.
    public static func wrongScheme(host: String, speaksTLS: Bool) -> Reason {
        .stated(
            speaksTLS
                ? "The server at \(host) speaks TLS: its URL begins with https://, not with http://."
                : "The server at \(host) does not speak TLS. Perhaps its URL begins with http://.")
    }
}

/// Why a flow did not begin or ended, or why a callback or a typed proof is not its own.
public enum FlowReason: Sendable, Equatable {
    /// As many flows are pending as the registry keeps.
    case tooManyPending(most: Int)
    /// `age` is in seconds.
    case anotherPending(AccountName, method: SignInMethod, age: Int)
    case configurationChanged(AccountName)
    case noProofAwaited(Proof.Kind)
    case otherResponseAwaited
    case otherAddress
    case anotherCallback
    case notURL
    case malformedCallback
    /// A parameter that may occur only once is repeated. The name is from Ringback's own list.
    case repeatedParameter(String)
    case codeAndError
    case neitherCodeNorError
    /// The callback has tokens in its URL (implicit flow).
    case carriesTokens
    case withoutState
    /// The parameters are in the fragment, which only the implicit flow and `response_mode=fragment` use.
    case inFragment
    /// The response was sent by POST, which is accepted only with `response_mode=form_post`.
    case posted
    /// A script or a frame of a page sent it, and not a navigation of the browser.
    case notNavigated
    case unknownState
}

/// Why a session cannot be stored, read, refreshed or asked for a token.
public enum SessionReason: Sendable, Equatable {
    /// `held` and `other`: names or subjects; nil for a user without either.
    case otherUser(AccountName, held: String?, other: String?)
    /// The refresh was not made, since the vault has no room for a new refresh token.
    case noRoom(cause: VaultReason)
    /// Another host refreshes the session, or may have. It is looked at again after this time at the latest.
    case heldElsewhere(AccountName, wait: Duration)
    /// The provider refused every refresh token, but another host may have received a newer one.
    case endUncertain(AccountName)
    /// There is no refresh token to renew the session with. `advice` says how to get one.
    case notRefreshable(AccountName, advice: Reason?)
    case notDownscopable(AccountName, advice: Reason?)
    case endsWithToken(AccountName, advice: Reason?)
    /// Scopes that the provider took away when a downscoped token was requested.
    case lostScopes(AccountName, [String])
    /// The provider takes scopes away from the session when a downscoped token is requested.
    case losesScopes(AccountName)
    /// Whether the provider does that is not known, and a program at an exposed socket must not find it out. `exchange`
    /// is the code of the provider's error when a token was to be exchanged instead; nil without an exchange.
    case mayLoseScopes(AccountName, exchange: String?)
}
