public import RingbackBase

/// What a program asks for that needs the user's consent.
public enum ConsentUse: String, Sendable, CaseIterable {
    case token
    case idToken = "id_token"
    case providerToken = "provider_token"
    case proof
    case lookup
    case exposedSocket = "exposed_socket"

    /// Consent to one token is consent to the account's others, but not to showing them to other programs.
    public var exposesAccount: Bool { self == .exposedSocket }
}

/// A program waits for the user's answer.
public struct ConsentQuestion: Sendable, Equatable {
    public let id: String
    public let account: AccountName
    public let use: ConsentUse
    /// The scopes of a downscoped token, separated by spaces.
    public let scope: String?
    public let program: ProgramIdentity
    public let origin: ProgramOrigin
    public let requestedAt: WallInstant
    /// When the last of the waiting requests ends.
    public var expiresAt: WallInstant
    /// The number of requests that wait for the answer.
    public var requests = 1

    public init(
        id: String, _ account: AccountName, _ use: ConsentUse, scope: String?, program: ProgramIdentity,
        origin: ProgramOrigin, requestedAt: WallInstant, expiresAt: WallInstant
    ) {
        self.id = id
        self.account = account
        self.use = use
        self.scope = scope
        self.program = program
        self.origin = origin
        self.requestedAt = requestedAt
        self.expiresAt = expiresAt
    }
}

public enum ConsentDecision: String, Sendable, CaseIterable {
    case allow, deny
}

/// Who answered a question.
public enum ConsentAnswerer: Sendable, Equatable {
    /// A button of the notice.
    case notice
    /// A program at the socket.
    case program(ProgramIdentity, uid: UInt32, pid: Int32)
}

public enum ConsentNews: Sendable {
    /// The first use of an account with `consent = "notify"` by a program.
    case used(AccountName, ConsentUse, ProgramIdentity)
    case requested(ConsentQuestion)
    /// `remember`: how long, as it was asked for.
    case decided(ConsentQuestion, ConsentDecision, remember: String, by: ConsentAnswerer)
    /// Every waiting request has ended without an answer.
    case lapsed(ConsentQuestion)
    /// Too many questions are open, or were asked in the last hour: this program is refused. Told once.
    case flooded(AccountName, ProgramIdentity)
}

extension Broker {
    /// Records the news, and posts its event if it has one.
    public func tell(_ news: ConsentNews) {
        record(.consent(news))
        if let event = BrokerEvent(news, at: now) { bus.post(event) }
    }
}

extension BrokerEvent {
    init?(_ news: ConsentNews, at: WallInstant) {
        switch news {
        case .used(let account, _, _):
            self.init(kind: .accountUsed, account: account, state: nil, consent: news, at: at)
        case .requested(let question):
            self.init(kind: .consentRequested, account: question.account, state: nil, consent: news, at: at)
        case .decided(let question, _, _, _):
            self.init(kind: .consentDecided, account: question.account, state: nil, consent: news, at: at)
        case .lapsed, .flooded: return nil
        }
    }

    /// Where the program is whose question this is. Its own listeners are not told of it.
    var asker: ProgramOrigin? {
        if case .requested(let question)? = consent { question.origin } else { nil }
    }
}
