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
