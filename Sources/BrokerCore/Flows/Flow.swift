internal import Cryptography
internal import HTTPMessages
internal import OAuth
internal import Secrets
public import SupabaseAuth

/// One pending sign-in: who asked for what, what is awaited, and until when. Single use.
struct Flow: Sendable {
    let id: String
    let account: Account
    let request: SignInRequest
    var awaited: Awaited
    let startedAt: Int
    let expiresAt: Int
    /// The first in seconds since boot.
    let beganAt: Int
    /// The same in milliseconds.
    let beganAtBoot: Int
    /// The other in milliseconds since boot: a bound of two seconds is not three.
    let deadline: Int

    /// What ends it.
    enum Awaited: Sendable {
        /// An authorization response (RFC 6749 section 4.1.2).
        case authorization(AuthorizationFlow)
        /// What a Supabase project sends the person back with, or to.
        case project(SupabaseFlow)
        /// A yes on another device (RFC 8628).
        case device(DeviceFlow)
    }

    /// - Parameters:
    ///   - timeout: seconds, where neither the request nor the account's own bound is to count.
    ///   - limit: seconds, where the provider ends it.
    init(
        _ awaited: Awaited, account: Account, request: SignInRequest, timeout: Int? = nil, atMost limit: Int = .max,
        by clock: BrokerClock
    ) {
        let seconds = min(request.timeout ?? timeout ?? account.flowTimeout, limit)
        id = Flow.newID()
        self.account = account
        self.request = request
        self.awaited = awaited
        startedAt = clock.now()
        expiresAt = startedAt + seconds
        beganAt = clock.uptime
        beganAtBoot = clock.boot()
        deadline = clock.boot() + seconds * 1_000
    }

    /// People name flows on the command line: what begins with a dash would be taken for an option there.
    static func newID() -> String {
        while true {
            let id = RandomToken.base64URL(bits: 128).revealed()
            if !id.hasPrefix("-") { return id }
        }
    }

    /// True once its time has passed: the very end still counts.
    func isOver(by clock: BrokerClock) -> Bool { clock.boot() > deadline }

    /// Where its callback is to arrive; empty where none is awaited.
    var redirectURI: String { awaited.redirectURI }

    /// What the browser opens; empty where there is nothing to open.
    var authorizationURL: String { awaited.authorizationURL }

    /// A change of the user, a confirmation or a recovery: somebody is to read a mail, within an hour.
    var waitsForMail: Bool {
        guard case .project(let flow) = awaited else { return false }
        return request.changesUser || flow.purpose == .recovery || waitingFor == "email_confirmation"
    }

    /// What its callback is found by.
    var key: [UInt8] { awaited.key }

    /// What callers are told: see ``FlowView/waitingFor``.
    var waitingFor: String {
        switch awaited {
        case .authorization: "callback"
        case .project(let flow): flow.waitingFor
        case .device: "device"
        }
    }

    /// What is to be entered on another device.
    var deviceCode: DeviceCode? { if case .device(let flow) = awaited { flow.shown } else { nil } }

    /// When the message may be sent again, in seconds since boot; nil where none was sent.
    var firstResendAt: Int? {
        guard case .project(let flow) = awaited, flow.message != nil else { return nil }
        return beganAt + SupabaseFlow.resendInterval
    }

    /// What is said when nobody came in time.
    var expiry: BrokerError {
        if case .project(let flow) = awaited { return .flowExpired(flow.expiry(of: self)) }
        if case .device(let flow) = awaited {
            return .flowExpired(flow.expiry(of: account.name, after: expiresAt - startedAt))
        }
        var text =
            "The sign-in of \(account.name) was not finished within \(expiresAt - startedAt) seconds. "
            + "Waited for a callback to \(redirectURI)."
        if case .authorization(let flow) = awaited, let pushed = flow.pushed {
            text += " Its page's address could be opened for \(pushed.expiresIn) seconds, and once; whoever asks for "
            text += "the sign-in again gets another one."
        }
        return .flowExpired(text)
    }

    /// What the records are told of its end.
    func ending(as status: FlowView.Status, after duration: Duration) -> BrokerFact {
        let (outcome, error): (BrokerFact.Outcome, BrokerError?) =
            switch status {
            case .pending, .completed: (.completed, nil)
            case .failed(let error): (.failed, error)
            case .cancelled: (.cancelled, nil)
            case .expired(let error): (.expired, error)
            }
        return .signInEnded(
            account.name, method: request.method, outcome, duration: duration, error: error)
    }
}

/// What a caller asks of a sign-in. Equal requests share one flow.
public struct SignInRequest: Sendable, Equatable {
    public var method: String
    /// Nil: the account's.
    public var scopes: [String]?
    public var parameters: [(String, String)]
    /// Seconds; nil: the account's.
    public var timeout: Int?
    /// Another person than the one who is signed in may take the account over.
    public var switchesSubject: Bool
    /// What only sign-ins at a Supabase project have.
    public var project: SupabaseSignInFields?
    /// The port that the callback is to come to; nil for the configured one, or any that is free.
    public var callbackPort: Int?
    /// It takes the place of a different sign-in of the account that is pending.
    public var replaces = false
    /// Who asks: a flow whose processes listen is waited for.
    public var process: Int32?

    public init(
        method: String = "browser", scopes: [String]? = nil, parameters: [(String, String)] = [], timeout: Int? = nil,
        switchesSubject: Bool = false
    ) {
        self.method = method
        self.scopes = scopes
        self.parameters = parameters
        self.timeout = timeout
        self.switchesSubject = switchesSubject
    }

    /// The bound on the wait, and what becomes of a different sign-in, make no other sign-in.
    public static func == (left: SignInRequest, right: SignInRequest) -> Bool {
        left.method == right.method && left.scopes == right.scopes && left.switchesSubject == right.switchesSubject
            && left.project == right.project && left.callbackPort == right.callbackPort
            && left.parameters.count == right.parameters.count
            && zip(left.parameters, right.parameters).allSatisfy { $0 == $1 }
    }
}

/// A flow as callers see it.
public struct FlowView: Sendable {
    public enum Status: Sendable, Equatable {
        case pending
        case completed
        case failed(BrokerError)
        case cancelled
        case expired(BrokerError)
    }

    public let id: String
    public let account: AccountName
    public let method: String
    public let status: Status
    /// `callback`, `code`, `email_confirmation`, `device`, `passkey`.
    public let waitingFor: String
    /// For a person to be shown. Empty where there is nothing to open.
    public let authorizationURL: String
    /// For a program to open, once: made for the caller who gets this view. Empty where none was made.
    public var openURL = ""
    /// What became of the addresses that programs were to open, oldest first.
    public var openAddresses: [OpenAddress] = []
    /// Empty where no callback is awaited.
    public let redirectURI: String
    /// Unix seconds.
    public let startedAt: Int
    public let expiresAt: Int
    /// When the message may be sent again.
    public let resendAfter: Int?
    /// Where codes may come from, where there is more than one message; and whether one of two has been confirmed.
    public var awaitedCodes: [CodeOrigin] = []
    public var isHalfConfirmed = false
    /// What to enter on another device.
    public var device: DeviceCode?
    /// What an app's authenticator is to answer.
    public var passkey: PasskeyChallenge?
}

/// What became of a callback.
public enum CallbackVerdict: Sendable, Equatable {
    case completed(flow: String)
    case failed(flow: String, BrokerError)
    /// The first of two links was followed: the server has noted it, and nothing was changed here.
    case noted(flow: String)
    /// It came by the link of an older message: the flow goes on waiting for a newer one.
    case outdated(flow: String)
    /// Nothing was changed; the sentence says why.
    case ignored(String)
    /// The state belonged to a flow that has ended.
    case ended
}

/// Where redirect URIs are received. Opened per flow, closed when the flow ends.
public struct CallbackReceiver: Sendable {
    /// Makes the redirect of a configured template (nil: the default) reachable and returns it as it is to be sent.
    public let open: @Sendable (_ template: String?, AccountName) async throws(BrokerError) -> String
    /// Makes an address with the key reachable that a program is to open, beside a redirect URI (empty: none); nil where
    /// that cannot be.
    public let openEntrance: @Sendable (_ key: String, _ redirectURI: String, AccountName) async -> String?
    /// No flow waits behind this redirect URI or this address to open any more.
    public let close: @Sendable (_ redirectURI: String) async -> Void
    /// `127.0.0.1:PORT` of what is open.
    public let listeners: @Sendable () -> [String]

    public init(
        open: @escaping @Sendable (_ template: String?, AccountName) async throws(BrokerError) -> String,
        openEntrance:
            @escaping @Sendable (
                _ key: String, _ redirectURI: String, AccountName
            ) async -> String? = { _, _, _ in nil },
        close: @escaping @Sendable (_ redirectURI: String) async -> Void,
        listeners: @escaping @Sendable () -> [String]
    ) {
        self.open = open
        self.openEntrance = openEntrance
        self.close = close
        self.listeners = listeners
    }
}

extension FlowRegistry {
    /// True if a callback at this address is one of the redirect URI: see ``WebURL/isPlace(of:)``.
    static func isPlace(_ address: String, of redirectURI: String) -> Bool {
        guard let found = try? WebURL(parsing: address), let asked = try? WebURL(parsing: redirectURI) else {
            return false
        }
        return found.isPlace(of: asked)
    }

    /// The origin of an endpoint.
    static func origin(of endpoint: String) throws(BrokerError) -> String {
        do throws(WebURL.Failure) {
            return try WebURL(parsing: endpoint).origin
        } catch {
            throw .misconfigured("An endpoint of the provider is not a URL.")
        }
    }
}
