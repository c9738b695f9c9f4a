import Glibc
package import RingbackBase

public struct User: Sendable, Equatable {
    /// The address the provider knows; verified or not.
    public var email: String?
    public var name: String?
    /// With its plus sign, where the provider tells one.
    public var phone: String?
    /// Everything the provider says, as JSON text.
    public var json: String

    package init?(reading json: JSON?) {
        guard let json, let object = json.object else { return nil }
        // Some providers write what they do not know as an empty text.
        func text(_ json: JSON?) -> String? { json?.string.flatMap { $0.isEmpty ? nil : $0 } }
        email = text(object["email"])
        name = text(object["name"]) ?? text(object["user_metadata"]?["full_name"])
        phone = text(object["phone"])
        self.json = json.text
    }
}

/// What a sign-in yields: a short-lived access token and its subject. Descriptions and reflection leave the token out.
public struct Session: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    public var account: String
    /// The user's identifier at the provider.
    public var subject: String
    public var accessToken: String
    /// As the provider wrote it, mostly `Bearer`.
    public var tokenType: String
    /// Nil where the provider states no lifetime.
    public var expiresAt: WallInstant?
    /// Space-separated.
    public var scope: String
    public var issuer: String
    public var user: User?
    /// The assurance level of the session, at a Supabase project: `aal1`, or `aal2` with a second factor.
    public var assurance: String?
    /// The level that the user's factors require. If it differs from ``assurance``, the sign-in is not complete.
    public var nextAssurance: String?
    /// When the session itself ends and a new sign-in is needed: only beside ``AuthEvent/sessionEnding``.
    public var endsAt: WallInstant?

    /// The value for a request's `Authorization` header (RFC 6750 section 2.1). A token of the type `DPoP` needs a proof
    /// beside it (RFC 9449): ``BrokerClient/proof(_:method:url:nonce:rejectedSHA256:)`` has both.
    public var authorization: String { "\(tokenType.lowercased() == "bearer" ? "Bearer" : tokenType) \(accessToken)" }

    public var description: String { "Session(account: \(account), subject: \(subject))" }
    public var customMirror: Mirror { Mirror(self, children: ["account": account, "subject": subject]) }

    package init(reading json: JSON) throws(RingbackError) {
        accessToken = try json.text("access_token", of: "session")
        account = json["account"]?.string ?? ""
        subject = json["subject"]?.string ?? ""
        tokenType = json["token_type"]?.string ?? "Bearer"
        expiresAt = WallInstant(json["expires_at"])
        scope = json["scope"]?.string ?? ""
        issuer = json["issuer"]?.string ?? ""
        user = User(reading: json["user"])
        assurance = json["aal"]?.string
        nextAssurance = json["next_aal"]?.string
    }
}

public struct Account: Sendable, Equatable {
    /// The state of an account. Open, since the daemon may be newer than the app.
    public struct State: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public init(stringLiteral value: String) { rawValue = value }

        public static let loading: State = "loading"
        public static let unauthenticated: State = "unauthenticated"
        /// A sign-in is pending, and there is no session yet.
        public static let authenticating: State = "authenticating"
        public static let authenticated: State = "authenticated"
        /// The session is being refreshed; its token is still served while it is valid.
        public static let refreshing: State = "refreshing"
        public var hasSession: Bool { self == .authenticated || self == .refreshing }
    }

    public var name: String
    /// A preset's name, `supabase`, `oidc` or `oauth2`.
    public var provider: String
    /// The host of the issuer, of the endpoints or of the MCP server, with an unusual port.
    public var providerHost: String?
    public var state: State
    /// True for the one account that commands use if they name none: `default` in the configuration.
    public var isDefault: Bool
    /// The program that opens the account's sign-in page, and its arguments; `{url}` stands for the address, which is
    /// otherwise the last argument. Nil for the user's default browser.
    public var browser: [String]?
    /// False for a service, which has a grant of its own, and for an MCP server that takes requests without a token.
    public var needsSignIn: Bool
    /// True if the access token has expired while the provider cannot be reached.
    public var isStale: Bool
    public var subject: String?
    public var user: User?
    public var assurance: String?
    public var nextAssurance: String?
    /// When the access token expires.
    public var expiresAt: WallInstant?
    /// When the session ends unless it is refreshed before; nil if the provider does not say so.
    public var endsAt: WallInstant?
    /// False for a session without a refresh token: it ends with its access token.
    public var isRefreshable: Bool
    /// The last error. Cleared when the next sign-in, sign-out or refresh starts, when a change of the user succeeds,
    /// and by a reload of the configuration.
    public var error: RingbackError?

    package init(reading json: JSON) throws(RingbackError) {
        name = try json.text("name", of: "account")
        provider = json["provider"]?.string ?? ""
        providerHost = json["provider_host"]?.string
        state = State(rawValue: json["state"]?.string ?? "")
        isDefault = json["default"]?.bool ?? false
        browser = json["browser"]?.array?.compactMap(\.string)
        needsSignIn = json["grant"] == nil && json["sign_in"]?.bool ?? true
        isStale = json["stale"]?.bool ?? false
        subject = json["subject"]?.string
        user = User(reading: json["user"])
        assurance = json["aal"]?.string
        nextAssurance = json["next_aal"]?.string
        expiresAt = WallInstant(json["expires_at"])
        endsAt = WallInstant(json["ends_at"])
        isRefreshable = json["refreshable"]?.bool ?? true
        error = RingbackError(reading: json["error"])
    }
}

public struct Flow: Sendable, Equatable {
    /// The state of a sign-in. Open, since the daemon may be newer than the app.
    public struct Status: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public init(stringLiteral value: String) { rawValue = value }

        public static let pending: Status = "pending"
        public static let completed: Status = "completed"
        public static let failed: Status = "failed"
        public static let cancelled: Status = "cancelled"
        public static let expired: Status = "expired"
    }

    /// The method of a sign-in, or the operation that the flow is for. Open: the daemon may be newer than the app.
    public struct Method: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public init(stringLiteral value: String) { rawValue = value }

        public static let browser: Method = "browser"
        /// With a code that is entered on another device (RFC 8628).
        public static let device: Method = "device"
        public static let link: Method = "link"
        public static let userUpdate: Method = "update_user"
        /// Signing in a user who forgot the password.
        public static let recovery: Method = "recovery"
    }

    /// What a pending sign-in waits for. Open, since the daemon may be newer than the app.
    public struct WaitingFor: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public init(stringLiteral value: String) { rawValue = value }

        public static let callback: WaitingFor = "callback"
        /// A code that was sent to the user.
        public static let code: WaitingFor = "code"
        /// A link or a code in a mail that confirms the user's address.
        public static let emailConfirmation: WaitingFor = "email_confirmation"
        /// A code that the user enters on another device (RFC 8628).
        public static let device: WaitingFor = "device"
        public static let passkey: WaitingFor = "passkey"
        /// What the user does on Ringback's own sign-in page.
        public static let page: WaitingFor = "page"
    }

    public var id: String
    public var account: String
    public var method: Method
    public var status: Status
    /// Nil once the flow has ended.
    public var waitingFor: WaitingFor?
    /// The sign-in page's address, to be shown to the user. A program that opens a page opens ``openURL``.
    public var authorizationURL: String?
    /// What to open in a browser, once. It redirects to the sign-in page, whose address is then in no argument list.
    /// Made for this call; nil when a flow is only looked at, and if none could be made: ``openURLError`` says why.
    /// Start no program with ``authorizationURL`` then, but show it.
    public var openURL: String?
    /// Two words that stand on Ringback's own sign-in page too, so that a user can tell it from an imitation. Show them
    /// before the page is opened; nil for other pages.
    public var words: String?
    public var openURLError: RingbackError?
    /// What happened to the addresses that programs were to open, oldest first. If a few seconds after opening it yours
    /// is still `unused`, or is `foreign`, the user's browser has not fetched it: show ``authorizationURL``.
    public var openAddresses: [OpenAddress]
    /// The options for an app's authenticator, as JSON text, for `PublicKeyCredential.parseRequestOptionsFromJSON()`
    /// and similar functions. ``BrokerClient/verify(_:credential:)`` takes the authenticator's response.
    public var passkeyOptions: String?
    /// What to enter on another device, and where.
    public var userCode: String?
    public var verificationURI: String?
    /// The address with the code in it, such as for a QR code.
    public var verificationURIComplete: String?
    public var expiresAt: WallInstant?
    /// When a message can be sent again; nil where none was sent.
    public var resendAfter: WallInstant?
    /// The addresses and numbers (with their plus sign) whose codes are awaited, if there is more than one message.
    public var awaiting: [String]
    /// What to tell the user while the flow is pending, such as to check their mail; or what is left to do when it is
    /// completed, such as to choose a new password. Usually nil.
    public var userMessage: String?
    /// Why the flow has ended; while it is pending, why a callback of it was refused.
    public var error: RingbackError?
    package var redirectURI: String?

    public struct OpenAddress: Sendable, Equatable {
        /// What happened to it. Open, since the daemon may be newer than the app.
        public struct Status: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
            public let rawValue: String
            public init(rawValue: String) { self.rawValue = rawValue }
            public init(stringLiteral value: String) { rawValue = value }

            public static let unused: Status = "unused"
            /// A browser of the user was redirected to the sign-in page.
            public static let fetched: Status = "fetched"
            /// Another user requested it and was not redirected: a browser in a container, or an attacker.
            public static let foreign: Status = "foreign"
        }

        public var url: String
        public var status: Status
        /// Of the other user, if the system tells it.
        public var uid: Int?
    }

    /// Nil if the JSON is not a flow: a sign-in may be done at once, and then the response is the account.
    package init?(reading json: JSON) {
        guard let id = json["id"]?.string, let status = json["status"]?.string else { return nil }
        self.id = id
        self.status = Status(rawValue: status)
        account = json["account"]?.string ?? ""
        method = Method(rawValue: json["method"]?.string ?? "")
        waitingFor = json["waiting_for"]?.string.map { WaitingFor(rawValue: $0) }
        authorizationURL = json["authorization_url"]?.string
        openURL = json["open_url"]?.string
        words = json["words"]?.string
        openURLError = RingbackError(reading: json["open_url_error"])
        openAddresses = (json["open_urls"]?.array ?? []).compactMap { entry in
            guard let url = entry["url"]?.string, let status = entry["status"]?.string else { return nil }
            return OpenAddress(url: url, status: .init(rawValue: status), uid: entry["uid"]?.integer)
        }
        passkeyOptions = waitingFor == .passkey ? json["options"]?.visibleText : nil
        userCode = json["user_code"]?.string
        verificationURI = json["verification_uri"]?.string
        verificationURIComplete = json["verification_uri_complete"]?.string
        expiresAt = WallInstant(json["expires_at"])
        resendAfter = WallInstant(json["resend_after"])
        awaiting = json["awaiting"]?.array?.compactMap { $0["email"]?.string ?? $0["phone"]?.string } ?? []
        userMessage = ["pending", "completed"].contains(status) ? json["user_message"]?.string : nil
        error = RingbackError(reading: json["error"])
        redirectURI = json["redirect_uri"]?.string
    }
}

public struct DaemonStatus: Sendable, Equatable {
    public var version: String
    /// The commit that it was built from, as `--version` shows it; nil behind a restricted socket and from an older one.
    public var build: String?
    /// Nil behind a restricted socket, whose daemon may be on another machine.
    public var pid: Int?
    /// Seconds.
    public var uptime: Int
    /// True while no session is served, because the vault is locked.
    public var isVaultLocked: Bool
    /// Why it is locked, and what to do; nil when it is not.
    public var vaultLockReason: String?
    /// The number of sign-outs that the provider has not been told of yet.
    public var pendingRevocations: Int
    public var accounts: [Account.State: Int]

    package init(reading json: JSON) throws(RingbackError) {
        version = try json.text("version", of: "status")
        build = json["build"]?.string
        pid = json["pid"]?.integer
        uptime = json["uptime"]?.integer ?? 0
        isVaultLocked = json["vault"]?["locked"]?.bool ?? false
        vaultLockReason = json["vault"]?["reason"]?.string
        pendingRevocations = json["pending_revocations"]?.integer ?? 0
        accounts = [:]
        for member in json["accounts"]?.object?.members ?? [] {
            accounts[Account.State(rawValue: member.name)] = member.value.integer
        }
    }
}

/// An instant by the wall clock, to the second. With Foundation, `Date(timeIntervalSince1970:
/// Double(instant.secondsSince1970))` is the same instant.
public struct WallInstant: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Unix time: seconds since 1970-01-01T00:00:00Z, without leap seconds.
    public var secondsSince1970: Int
    public init(secondsSince1970: Int) { self.secondsSince1970 = secondsSince1970 }
    public static var now: WallInstant { WallInstant(secondsSince1970: time(nil)) }

    /// From here to the other; negative if that is earlier. Limited to what an `Int` of seconds can hold.
    public func duration(to other: WallInstant) -> Duration {
        let (seconds, overflow) = other.secondsSince1970.subtractingReportingOverflow(secondsSince1970)
        return .seconds(overflow ? (other > self ? .max : .min) : seconds)
    }

    public static func < (left: WallInstant, right: WallInstant) -> Bool {
        left.secondsSince1970 < right.secondsSince1970
    }

    /// RFC 3339 in UTC, such as `2027-01-15T14:05:09Z`; `@` and the seconds for a year that has not four digits.
    public var description: String {
        // The years 0000 to 9999.
        guard (-62_167_219_200..<253_402_300_800).contains(secondsSince1970) else { return "@\(secondsSince1970)" }
        return Timestamp.text(of: secondsSince1970)
    }

    /// The instant of a JSON member with a time as text (RFC 3339); nil if it is missing or is not such a text.
    package init?(text json: JSON?) {
        guard let seconds = json?.string.flatMap({ Timestamp.seconds(of: $0) }) else { return nil }
        self.init(secondsSince1970: seconds)
    }

    package init?(_ json: JSON?) {
        guard let seconds = json?.integer else { return nil }
        self.init(secondsSince1970: seconds)
    }
}
