public import HTTPMessages

/// The result of one check: what was found, and what a client needs to advise the user. It holds names, hosts,
/// numbers and addresses of the provider's documents, and no secret.
public struct Finding: Sendable, Equatable {
    /// The severity of a finding.
    public enum Level: String, Sendable, CaseIterable {
        case ok
        /// It works, but not as it should, or not for long.
        case warning
        case wrong
    }

    /// What was checked. The raw values are those of the socket API.
    public enum Check: String, Sendable, CaseIterable {
        case network, tls, clock
        /// The provider itself.
        case provider
        /// The metadata at the issuer.
        case discovery
        /// Whether the account can sign in with these metadata.
        case metadata
        /// The authorization endpoint.
        case page
        case client
        /// Where callbacks arrive.
        case redirect
        case session, vault, peers
        /// An exposed socket.
        case expose
        /// A kept file.
        case file
    }

    /// What is wrong. The raw values are those of the socket API.
    public enum Cause: String, Sendable, CaseIterable {
        case unreachable
        /// The server's certificate.
        case untrusted
        /// The server speaks TLS and the URL is an http URL, or the other way round.
        case wrongScheme = "wrong_scheme"
        /// The response is not one of a provider that the account can use.
        case badResponse = "bad_response"
        /// ``Finding/setting`` names the key, where there is one.
        case configuration
        case clientRefused = "client_refused"
        /// The provider registers clients that ask for it (RFC 7591): nothing is wrong.
        case registrationOffered = "registration_offered"
        case clockDiffers = "clock_differs"
        /// The user has to paste each callback.
        case callbackIsPasted = "callback_is_pasted"
        /// Any other app may claim the redirect URI's scheme.
        case schemeNotReserved = "scheme_not_reserved"
        case portTaken = "port_taken"
        case sessionStale = "session_stale"
        case signInNeeded = "sign_in_needed"
        case vaultLocked = "vault_locked"
        /// The vault's key is kept by another source than the configured one.
        case keySourceDiffers = "key_source_differs"
        /// ``Finding/path`` is open to others.
        case openToOthers = "open_to_others"
        case vaultInMemory = "vault_in_memory"
        /// This host has not joined those that share the vault.
        case notJoined = "not_joined"
        /// Another host must give the key of the shared vault to this one.
        case noHostsKey = "no_hosts_key"
        case notExposed = "not_exposed"
        case fileNotKept = "file_not_kept"
        case peersUnproved = "peers_unproved"
        case shuttingDown = "shutting_down"
    }

    public var check: Check
    public var level: Level
    public var message: Reason
    public var cause: Cause?
    /// The key of the configuration to look at.
    public var setting: String?
    /// The URL that was requested; nil if it has characters that a shell would interpret.
    public var url: String?
    public var host: String?
    public var port: Int?
    /// A directory of the daemon's machine.
    public var path: String?
    /// How ``url`` is requested; nil for an address that is not a provider's.
    public var way: Way?
    /// The issuer in the provider's metadata, where it differs from the configured one and is at the same host.
    public var stated: String?
    /// Scopes that a sign-in has to request, separated by spaces.
    public var scope: String?

    /// How an account reaches its provider.
    public struct Way: Sendable, Equatable {
        public var route: HTTPRoute
        /// The path of the certificates that are trusted instead of the system's; nil for the system's.
        public var certificateFile: String?
    }

    /// - Parameter isOfAll: see ``FindingReason/proxied(url:exceptions:isOfAll:)``.
    public static func proxied(by proxy: HTTPProxy, isOfAll: Bool) -> Finding {
        let reason = FindingReason.proxied(url: proxy.url.text, exceptions: proxy.exceptions, isOfAll: isOfAll)
        return Finding(.network, .ok, .finding(reason))
    }

    public init(
        _ check: Check, _ level: Level, _ message: Reason, _ cause: Cause? = nil, setting: String? = nil,
        url: String? = nil
    ) {
        self.check = check
        self.level = level
        self.message = message
        self.cause = cause
        self.setting = setting
        guard let url, let parsed = try? WebURL(parsing: url) else { return }
        host = parsed.host
        port = parsed.port ?? (parsed.scheme == "https" ? 443 : 80)
        self.url = Finding.isPlain(url) ? url : nil
    }

    /// True if the URL has no characters that a shell would interpret.
    static func isPlain(_ url: String) -> Bool {
        url.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: ":/._-%[]".utf8.contains(byte)
            }
        }
    }
}
