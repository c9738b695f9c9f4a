public import SessionVault

/// Why a request was not done, or what a check found, as a fact. Its sentence is written where it is shown; nothing
/// decides by the sentence. It holds names, hosts and numbers; never a token, a URL with a query or a body.
public indirect enum Reason: Sendable, Equatable {
    case flow(FlowReason)
    case request(RequestReason)
    case session(SessionReason)
    case account(AccountReason)
    case provider(ProviderReason)
    case exposedSocket(ExposedSocketReason)
    case finding(FindingReason)
    case vault(VaultError)
    /// A fact that only one kind of account has.
    case kind(KindFact)
    /// Both, the first one first.
    case both(Reason, Reason)
}

/// A fact that only the code for one kind of account knows. The broker carries it and does not read it.
public protocol KindReason: Sendable {
    /// True if the other one is the same fact.
    func isSame(as other: any KindReason) -> Bool
}

extension KindReason where Self: Equatable {
    public func isSame(as other: any KindReason) -> Bool { other as? Self == self }
}

/// A ``KindReason`` that can be compared.
public struct KindFact: Sendable, Equatable {
    public let reason: any KindReason

    public init(_ reason: any KindReason) { self.reason = reason }

    public static func == (left: KindFact, right: KindFact) -> Bool { left.reason.isSame(as: right.reason) }
}

/// Why a request cannot be done with these accounts.
public enum AccountReason: Sendable, Equatable {
    /// More than one account has the issuer.
    case issuerShared([AccountName])
    /// The vault has no session of this name that belongs to no configured account.
    case noUnconfiguredSession(AccountName)
    /// The account is configured again, so that its session is not removed.
    case configuredAgain(AccountName)
}

/// Why a socket is not exposed or not revoked, or what happened to the record of exposed sockets.
public enum ExposedSocketReason: Sendable, Equatable {
    /// `place` is where the configuration defines a socket of this name.
    case configured(String, place: String)
    case exposedAlready(String)
    case tooMany(most: Int)
    /// The state directory cannot be written, so that the socket was not made.
    case notRecorded(String)
    /// It is closed, but the state directory cannot be written: the next start may open it again.
    case endNotRecorded(String)
    case unknown
    case closedAlready(String)
    /// Why it is closed. `place` is where the configuration defines it, if it does.
    case closed(ClosedSocket.Reason, place: String?)
    /// The error has no reason.
    case unknownCause
    /// What a member of the order has to be.
    case wrongOrder(RequestReason)
    /// A member of the order is wrong.
    case wrongMember(String, Reason)
    case recordLost
    /// `place` is where the damaged record was moved to, if it could be.
    case recordDamaged(place: String?)
}

/// What a check found.
public enum FindingReason: Sendable, Equatable {
    // MARK: The way to providers

    /// Requests of the account use no proxy.
    case direct
    /// Requests go through the proxy at `url`, except to `exceptions`. `isOfAll`: the requests of every account without
    /// a setting of its own; otherwise those of one account.
    case proxied(url: String, exceptions: [String], isOfAll: Bool)
    case certificateTrusted(host: String)
    /// The host is this machine.
    case notEncrypted(host: String)
    /// `cause` ends a sentence.
    case noTrustedConnection(host: String, cause: String)
    /// The server speaks TLS and the URL is an http URL, or the other way round.
    case wrongScheme(host: String, speaksTLS: Bool)
    /// `cause` ends a sentence.
    case unreachable(host: String, cause: String)
    case noResponse(host: String, seconds: Int)
    case badResponse(host: String)
    /// The daemon is shutting down.
    case notChecked

    // MARK: Providers

    /// What the host does or is: the rest of a sentence.
    case host(String, Reason)
    case respondsWithStatus(Int)
    case noTime(host: String)
    case clocksAgree(host: String)
    /// This machine's clock is `seconds` ahead or behind. ID tokens are refused from `leeway` seconds on.
    case clockDiffers(host: String, seconds: Int, isAhead: Bool, leeway: Int)

    // MARK: Where callbacks arrive

    case callbackAtFreePort
    case callbackIsPasted
    case callbackAsLink(scheme: String)
    /// Any other app may claim the scheme.
    case callbackAtOpenScheme(String)
    /// A sign-in has the port open now.
    case callbackAwaited
    case portFree
    /// `cause` ends a sentence; nil if it is not known.
    case portUnusable(ListenerFailure?)
}

/// Why a flow did not begin or ended, or why a callback or a typed proof is not its own.
public enum FlowReason: Sendable, Equatable {
    /// As many flows are pending as the registry keeps.
    case tooManyPending(most: Int)
    /// `age` is in seconds.
    case anotherPending(AccountName, method: SignInMethod, age: Int)
    /// Another flow without a key waits at this scheme.
    case schemeTaken(String)
    /// The method has no flow: its sign-in is done at once.
    case doneAtOnce(AccountName, method: SignInMethod)
    /// The daemon serves no pages here.
    case noPageListener

    case cancelled(AccountName)
    /// It was cancelled while its proof was redeemed.
    case cancelledBeforeEnd(AccountName)
    /// Another sign-in took its place before it had begun.
    case replaced(AccountName)
    /// The configuration of the account changed before the flow had begun.
    case configurationChangedAtStart(AccountName)
    case configurationChanged(AccountName)

    /// It does not wait for this kind of proof.
    case noProofAwaited(Proof.Kind)
    /// It waits for another kind of response of the provider.
    case otherResponseAwaited
    /// The callback came to another address than the flow's.
    case otherAddress
    /// Another proof of the same flow is being redeemed.
    case anotherProof
    case anotherCallback
    case callerDisconnected

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
    /// No pending flow has the callback's state.
    case unknownState
}

/// Why a response or an endpoint of a provider cannot be used, whatever the kind of its account.
public enum ProviderReason: Sendable, Equatable {
    case tooLarge(host: String)
    case notHTTP(host: String)
    /// An endpoint is neither https nor http on a loopback address.
    case endpointNotAllowed
    case endpointNotURL
    case noResponseInTime
    /// There is no connection, or no trusted one. `cause` is the transport's, and ends a sentence.
    case noConnection(cause: String)
}

/// What is wrong with a request, or why it has to be made again.
public enum RequestReason: Sendable, Equatable {
    /// The account has no such sign-in method; `offered` are those it has.
    case unknownMethod(AccountName, method: SignInMethod, offered: [String])
    /// Only Ringback sets this authorization parameter.
    case parameterReserved
    /// The authorization parameter has no name, or the configuration sets it.
    case parameterTaken
    /// The callback of the account does not come to a port of this machine.
    case callbackElsewhere(AccountName)
    /// The configuration of the account fixes the port.
    case portFixed(AccountName, port: Int)
    /// What a member of a downscoped token's request or of an exposed socket has to be; `most` is how many it may have.
    case scopes(most: Int)
    case textWithoutControls
    case absoluteURI
    case socketName
    case noAccounts
    case tooMany(most: Int)
    case ceiling(most: Int)
    case overflowUID
    case flatpakID
    case uidsWithFlatpak
    /// An exposed socket serves the MCP server of one account, and no token.
    case mcpOfSeveral
    case scopesWithMCP
    /// A name of a tool or of a method; `most` is in bytes.
    case mcpName(most: Int)
    /// `most` is in seconds.
    case lifetime(most: Int)
    /// The table of origins changed while the request was processed.
    case originsChanged
}

/// Why a session cannot be stored, read, refreshed or asked for a token.
public enum SessionReason: Sendable, Equatable {
    /// The account is signed in as `held`, and the sign-in is by `other`: names or subjects; nil for a user without
    /// either.
    case otherUser(AccountName, held: String?, other: String?)
    /// The caller expected another subject than the session's.
    case otherSubject(AccountName, expected: String)
    /// The provider's token endpoint has left the origin to which the session belongs.
    case endpointMoved(AccountName, origin: String)
    case notLoaded(AccountName)
    /// The vault's record cannot be read.
    case unreadable(AccountName)
    /// A newer version of Ringback sealed the record.
    case newer(AccountName)
    /// The record is of a vault that hosts share, and no database is configured.
    case shared(AccountName)
    /// The refresh was not made, since the vault has no room for a new refresh token.
    case noRoom(cause: VaultReason)
    /// Another host that shares the vault refreshes the session, or may have done so. It is looked at again after this
    /// time at the latest.
    case heldElsewhere(AccountName, wait: Duration)
    /// The provider refused every refresh token, but another host may have received a newer one.
    case endUncertain(AccountName)
    /// There is no refresh token to renew the session with. `advice` says how to get one.
    case notRefreshable(AccountName, advice: Reason?)
    /// There is no refresh token to request a downscoped token with. `advice` says how to get one.
    case notDownscopable(AccountName, advice: Reason?)
    /// The session ends with its access token. `advice` says how to get a refresh token.
    case endsWithToken(AccountName, advice: Reason?)
    /// Scopes that the provider took away when a downscoped token was requested.
    case lostScopes(AccountName, [String])
    /// The provider takes scopes away from the session when a downscoped token is requested.
    case losesScopes(AccountName)
    /// It is not known whether the provider does that, and the program at an exposed socket must not find it out.
    /// `exchange` is the code of the provider's error when a token was to be exchanged instead; nil if it offers no
    /// exchange.
    case mayLoseScopes(AccountName, exchange: String?)
    /// The provider's token had expired when it came.
    case expiredToken
    /// The vault is locked, since the user locked it.
    case vaultLocked
    /// The vault is in memory only: locking it would lose the sessions.
    case vaultInMemory
}
