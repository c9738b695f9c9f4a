/// What is wrong: `cause` of a problem document, of a check of the diagnostics, and of a mistake in the configuration.
/// Programs that advise their user go by it. The raw values are the words of the wire.
public enum ProblemCause: String, Sendable, CaseIterable {
    // MARK: The way to a provider, and the provider

    case unreachable
    /// The proxy opened no tunnel to the provider.
    case proxyFailed = "proxy_failed"
    /// The server's certificate is not trusted.
    case untrusted
    /// The server speaks TLS and the URL is an http URL, or the other way round.
    case wrongScheme = "wrong_scheme"
    case badResponse = "bad_response"
    case clientRefused = "client_refused"
    /// The provider registers clients that ask for it: nothing is wrong.
    case registrationOffered = "registration_offered"
    case clockDiffers = "clock_differs"

    // MARK: Configuration

    /// A setting is wrong; `setting` names it, where there is one.
    case configuration
    /// A call has made an exposed socket of the table's name; `socket` names it.
    case nameTaken = "name_taken"
    case callbackIsPasted = "callback_is_pasted"
    case schemeNotReserved = "scheme_not_reserved"
    case portTaken = "port_taken"

    // MARK: Paths: `path` has the rights of other users that it must not have

    case writableByOthers = "writable_by_others"
    case readableByOthers = "readable_by_others"
    case openToOthers = "open_to_others"
    case foreignOwner = "foreign_owner"

    // MARK: Sessions and the vault

    case signInPending = "sign_in_pending"
    case migrationPending = "migration_pending"
    case sessionStale = "session_stale"
    case signInNeeded = "sign_in_needed"
    case vaultLocked = "vault_locked"
    /// The vault's key is kept by another source than the configured one.
    case keySourceDiffers = "key_source_differs"
    case vaultInMemory = "vault_in_memory"
    /// This host has not joined those that share the vault.
    case notJoined = "not_joined"
    /// Another host must give the key of the shared vault to this one.
    case noHostsKey = "no_hosts_key"

    // MARK: The daemon

    case notExposed = "not_exposed"
    case fileNotKept = "file_not_kept"
    case peersUnproved = "peers_unproved"
    case shuttingDown = "shutting_down"
}
