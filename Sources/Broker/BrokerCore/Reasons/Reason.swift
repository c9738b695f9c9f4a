public import SessionVault

/// Why a request was not done, or what a check found: never a token, a URL with a query or a body.
public indirect enum Reason: Sendable, Equatable {
    /// For the user: one sentence or more, or the end of one that begins with a field's name. Nothing decides by it.
    case stated(String)
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
public protocol KindReason: Sendable, Equatable {
    /// For the user: one sentence or more, or the end of one that begins with a field's name.
    var sentence: String { get }
}

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
extension Reason {
    static func anotherPending(_ account: AccountName, method: SignInMethod, age: Int) -> Reason {
        .stated(
            "Another sign-in of \(account) is pending: method \(method), \(age) \(age == 1 ? "second" : "seconds") old."
        )
    }

    static func configurationChanged(_ account: AccountName) -> Reason {
        .stated("The configuration of \(account) changed during the sign-in.")
    }

    static func noProofAwaited(_ kind: Proof.Kind) -> Reason {
        .stated("This sign-in waits for no \(kind == .credential ? "passkey" : "code").")
    }

    public static let otherResponseAwaited = Reason.stated("This sign-in waits for another kind of response.")
    public static let otherAddress = Reason.stated(
        "It arrived at another address than the one this sign-in asked for.")
    static let anotherCallback = Reason.stated("Another callback of this sign-in is being worked on.")
    public static let malformedCallback = Reason.stated("The callback is not a well-formed authorization response.")

    /// A parameter that may occur only once. The name is from Ringback's own list.
    public static func repeatedParameter(_ name: String) -> Reason {
        .stated("The callback has the parameter \(name) more than once.")
    }

    public static let codeAndError = Reason.stated("The callback has both a code and an error.")
    public static let neitherCodeNorError = Reason.stated("The callback has neither a code nor an error.")
    public static let carriesTokens = Reason.stated(
        "The callback carries tokens (implicit flow), which is not accepted, because they were exposed. "
            + "Configure the provider for the authorization code flow with PKCE.")
    public static let withoutState = Reason.stated("The callback has no state, so it belongs to no sign-in.")
    /// The parameters are in the fragment, which only the implicit flow and `response_mode=fragment` use.
    static let inFragment = Reason.stated(
        "The response is in the URL's fragment. Configure the provider to send it in the query (response_mode=query).")
    static let unknownState = Reason.stated(
        "No pending sign-in has this state. It may have been finished or cancelled.")
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
