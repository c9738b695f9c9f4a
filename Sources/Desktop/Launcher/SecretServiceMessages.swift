public import DesktopBus
public import RingbackBase

// The encoding of the Secret Service's results between helper and daemon, the same for both directions.

extension SecretServiceStatus {
    var members: JSONObject {
        switch self {
        case .unavailable(let reason):
            JSONObject([.init("status", "unavailable"), .init("reason", .string(reason))])
        case .locked: JSONObject([.init("status", "locked")])
        case .unlocked: JSONObject([.init("status", "unlocked")])
        }
    }

    init?(members: JSONObject) {
        switch members["status"]?.string {
        case "unavailable": self = .unavailable(reason: members["reason"]?.string ?? "")
        case "locked": self = .locked
        case "unlocked": self = .unlocked
        default: return nil
        }
    }
}

extension SecretServiceError {
    var members: JSONObject {
        switch self {
        case .unavailable(let reason): JSONObject([.init("error", "unavailable"), .init("reason", .string(reason))])
        case .locked: JSONObject([.init("error", "locked")])
        case .notFound: JSONObject([.init("error", "not_found")])
        case .dismissed: JSONObject([.init("error", "dismissed")])
        case .failed(let reason): JSONObject([.init("error", "failed"), .init("reason", .string(reason))])
        }
    }

    init?(members: JSONObject) {
        let reason = members["reason"]?.string ?? ""
        switch members["error"]?.string {
        case "unavailable": self = .unavailable(reason: reason)
        case "locked": self = .locked
        case "not_found": self = .notFound
        case "dismissed": self = .dismissed
        case "failed": self = .failed(reason: reason)
        default: return nil
        }
    }
}

// The user's keyring, through the helper. Each call has a timeout. A failure of the Secret Service is thrown as
// ``HelperError/secretService(_:)``.
extension HelperConnection {
    /// A request takes several steps of a few seconds each.
    private static let timeout: Duration = .seconds(30)

    /// The state of the Secret Service, without prompting the user. A service that D-Bus can activate is started.
    /// Throws ``HelperError``.
    public func secretServiceStatus() async throws(HelperError) -> SecretServiceStatus {
        let answer = try await ask("status", id: nil, mayPrompt: false)
        guard let status = SecretServiceStatus(members: answer.members) else { throw .ended }
        return status
    }

    /// The key with this identifier. If it is locked, it is unlocked first; a prompt is shown only if `mayPrompt` is
    /// true (at most 90 s). Throws ``HelperError``, with `notFound` if there is no such key and `locked` if it stays
    /// locked.
    public func readKey(id: String, mayPrompt: Bool = false) async throws(HelperError) -> Secret {
        let answer = try await ask("read", id: id, mayPrompt: mayPrompt)
        guard let secret = answer.secret else { throw .ended }
        return secret
    }

    /// Stores a key of 1 to 1,024 bytes under an identifier that is not in use (1 to 128 letters, digits, `.`, `_` and
    /// `-`), and reads it back to verify it. Throws ``HelperError``, also if the identifier is in use.
    public func createKey(id: String, key: Secret, mayPrompt: Bool = false) async throws(HelperError) {
        guard (1...SecretServiceClient.maxSecret).contains(key.count) else {
            throw .secretService(.failed(reason: "a secret has 1 to \(SecretServiceClient.maxSecret) bytes"))
        }
        _ = try await ask("create", id: id, mayPrompt: mayPrompt, secret: key)
    }

    /// Deletes the key with this identifier. Throws `notFound` if there is none.
    public func deleteKey(id: String, mayPrompt: Bool = false) async throws(HelperError) {
        _ = try await ask("delete", id: id, mayPrompt: mayPrompt)
    }

    /// Unlocks the key with this identifier, or without one the keyring for new keys. Throws ``HelperError``, with
    /// `locked` or `dismissed` if it stays locked.
    public func unlockKeys(id: String? = nil, mayPrompt: Bool = true) async throws(HelperError) {
        _ = try await ask("unlock", id: id, mayPrompt: mayPrompt)
    }

    private func ask(
        _ verb: String, id: String?, mayPrompt: Bool, secret: Secret? = nil
    ) async throws(HelperError) -> HelperResponse {
        if let id, !SecretServiceClient.isIdentifier(id) {
            throw .secretService(.failed(reason: "not an identifier of a key"))
        }
        var members = JSONObject([
            .init("do", "secret_service"), .init("verb", .string(verb)), .init("may_prompt", .bool(mayPrompt)),
        ])
        members["key"] = id.map { .string($0) }
        let timeout = HelperConnection.timeout + (mayPrompt ? SecretServiceClient.promptTimeout : .zero)
        return try await request(members, secret: secret, timeout: timeout)
    }
}
