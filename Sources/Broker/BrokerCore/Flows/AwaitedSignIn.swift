internal import Cryptography
public import RingbackBase

/// What a flow awaits, in the terms of the provider that began it. The registry knows nothing more about it. It calls
/// ``recognize(_:of:)`` in the turn of a claim, so nothing here is `async`.
public protocol AwaitedSignIn: Sendable {
    /// The digest by which its callbacks are found: see ``Arrival/digest(of:)``.
    var key: [UInt8] { get }
    /// Where its callback is to arrive; empty where none is awaited.
    var redirectURI: String { get }
    /// The URL that the browser opens; empty if there is none.
    var authorizationURL: String { get }
    var waitingFor: WaitingFor { get }
    var proofs: Set<Proof.Kind> { get }

    /// Decides whether a callback belongs to this flow. `standing` is the flow's state at this moment.
    func recognize(_ arrival: Arrival, of standing: FlowStanding) -> Recognition

    func expiry(of flow: Flow) -> Reason

    /// True if its callback has no key. Then any callback at its redirect URI may belong to it.
    var isKeyless: Bool { get }
    /// For how long its page can be opened; nil if there is no limit.
    var pageLife: PageLife? { get }
    /// The time between two messages; nil where none was sent.
    var resendInterval: Duration? { get }
    /// True if it waits until the user reads a mail, which may take an hour. Another sign-in of the account may begin
    /// meanwhile, and ends it when it has succeeded.
    var waitsForMail: Bool { get }
    /// A page that the daemon itself serves for it, which is closed if the flow does not begin.
    var ownPage: String? { get }
    /// Another account's flow that it waits for.
    var upstream: UpstreamFlow? { get }
    /// True if its provider runs something beside it: see ``SignInProvider/accompany(_:in:)``.
    var isAccompanied: Bool { get }
    var details: AwaitedDetails { get }

    /// Advice if a callback of no flow looks like this flow's, but came to another address; nil if it does not.
    func hint(for url: WebURL, of account: AccountName) -> Reason?
}

extension AwaitedSignIn {
    public var isKeyless: Bool { false }
    public var pageLife: PageLife? { nil }
    public var resendInterval: Duration? { nil }
    public var waitsForMail: Bool { false }
    public var ownPage: String? { nil }
    public var upstream: UpstreamFlow? { nil }
    public var isAccompanied: Bool { false }
    public var details: AwaitedDetails { AwaitedDetails() }
    public func hint(for url: WebURL, of account: AccountName) -> Reason? { nil }
}

/// How long the provider keeps a page that can be opened once, from the time when the page was made there.
public typealias PageLife = (since: BootInstant, duration: Duration)

public typealias UpstreamFlow = (account: AccountName, flow: String)

/// A challenge for an authenticator (WebAuthn), with the options as the provider sent them.
public typealias AuthenticatorChallenge = (id: String, options: JSONObject)

/// What callers see of what a flow awaits.
public struct AwaitedDetails: Sendable {
    public var device: DeviceCode?
    public var challenge: AuthenticatorChallenge?
    /// If there is more than one message: where their codes may come from, and whether one of two has been confirmed.
    public var codes: [CodeOrigin] = []
    public var isHalfConfirmed = false
    /// Two words by which the user tells the daemon's own page from an imitation; nil for a page of the provider.
    public var words: String?
    /// The user forgot the password and is to choose a new one.
    public var isRecovery = false

    public init() {}
}

/// A code and where the user enters it.
public struct DeviceCode: Sendable, Equatable {
    public let userCode: String
    public let verificationURI: String
    /// The address with the code in it, if there is one.
    public let verificationURIComplete: String?

    public init(userCode: String, verificationURI: String, verificationURIComplete: String?) {
        self.userCode = userCode
        self.verificationURI = verificationURI
        self.verificationURIComplete = verificationURIComplete
    }
}

public struct CodeOrigin: Sendable {
    public var email: String?
    public var phone: String?
    public var kind: String?

    public init(email: String? = nil, phone: String? = nil, kind: String? = nil) {
        self.email = email
        self.phone = phone
        self.kind = kind
    }
}

public struct FlowStanding: Sendable {
    public let isPending: Bool
    /// Callbacks that turned out not to be the genuine one.
    public let attempts: Int
    /// Its message was sent again: links of older ones may still be followed.
    public let hasOlderMessage: Bool
}

/// Whether a callback is a flow's.
public enum Recognition: Sendable, Equatable {
    /// It belongs to the flow: only the provider and the browser know its content.
    case genuine
    /// The provider decides. It waits while another callback of the flow is processed.
    case likely
    /// It does not complete the flow. If it has the key of a pending flow, that flow shows the reason.
    case ignored(Reason)
    /// It only says that another confirmation is awaited.
    case noted
    /// It came by the link of an older message, which the provider does not take any more.
    case outdated
    /// It has nothing to do with the flow.
    case foreign
}

/// A received callback. It is not checked yet.
public struct Arrival: Sendable {
    public let url: WebURL
    public let form: [UInt8]?
    /// The accounts whose flows it may complete, depending on who sent it and how; nil for all.
    var accounts: Set<AccountName>?
    /// A digest of the callback. Identical copies have the same.
    let fingerprint: [UInt8]
    /// Without query and fragment.
    public let address: String
    /// Its possible keys: digests of the path's last segment and of each parameter's value.
    let keys: [[UInt8]]
    /// Digests of states in the fragment, the query beside a form, or parameters that cannot be parsed: there they have
    /// no effect, and only tell which flow a refused callback was meant for.
    let strayKeys: [[UInt8]]
    /// Why it can belong to no sign-in; nil if it may.
    let complaint: Reason?

    func mayBelong(to flow: Flow) -> Bool { accounts?.contains(flow.account.name) ?? true }

    init(_ text: String, form: [UInt8]?) throws(WebURL.Failure) {
        url = try WebURL(parsing: FormEncoding.escapingQuery(of: text))
        self.form = form
        fingerprint = Digest.sha256(Array(text.utf8) + [0] + (form ?? []))
        address = String(text.prefix { $0 != "?" && $0 != "#" })
        let bytes = form ?? Array((url.query ?? "").utf8)
        let parameters = try? FormEncoding.parse(bytes, needed: Arrival.needed)
        let fragmentBytes = form == nil ? Array((url.fragment ?? "").utf8) : []
        let fragment = try? FormEncoding.parse(fragmentBytes, needed: Arrival.needed)
        let segment = url.path.split(separator: "/", omittingEmptySubsequences: false).last.map(String.init) ?? ""
        let values = (form == nil ? [segment] : []) + (parameters ?? []).map(\.value)
        keys = values.filter { !$0.isEmpty }.map(Arrival.digest)
        let unread = form == nil ? fragmentBytes : Array((url.query ?? "").utf8)
        strayKeys = ((parameters == nil ? Arrival.states(in: bytes) : []) + Arrival.states(in: unread))
            .map(Arrival.digest)
        complaint = Arrival.complaint(parameters, fragment)
    }

    /// The digest (SHA-256) of a state or key: how long comparing digests takes reveals nothing about the key.
    public static func digest(of key: String) -> [UInt8] { Digest.sha256(Array(key.utf8)) }

    /// The values of `state`, even if other parameters are malformed. Our own states need no escapes.
    private static func states(in bytes: [UInt8]) -> [String] {
        let prefix = Array("state=".utf8)
        return bytes.split(separator: UInt8(ascii: "&")).filter { $0.starts(with: prefix) }
            .map { String(decoding: $0.dropFirst(prefix.count), as: UTF8.self) }.filter { !$0.isEmpty }
    }

    private static func complaint(
        _ parameters: [FormEncoding.Pair]?, _ fragment: [FormEncoding.Pair]?
    ) -> Reason? {
        guard let parameters, let fragment else { return .malformedCallback }
        if (parameters + fragment).contains(where: { tokens.contains($0.name) }) { return .carriesTokens }
        guard parameters.contains(where: { $0.name == "state" && !$0.value.isEmpty }) else {
            return fragment.contains { $0.name == "state" } ? .inFragment : .withoutState
        }
        return nil
    }

    private static let tokens: Set<String> = ["access_token", "id_token", "refresh_token"]
    /// The parameters that must be well-formed, whatever the provider makes of them.
    private static let needed: Set<String> = ["state", "code"]
}
