public import DesktopBus
public import Secrets
internal import StrictJSON

// The person's keyring through the helper, which alone talks to the bus. Each call is bounded; what the Secret Service
// says against it is ``HelperError/secretService(_:)``.
extension HelperConnection {
    /// Some steps of a few seconds each.
    private static let timeout: Duration = .seconds(30)

    /// What the Secret Service is like, without asking the person anything. A service that only needs to be started is
    /// started.
    public func secretServiceStatus() async throws(HelperError) -> SecretServiceStatus {
        let answer = try await ask("status", id: nil, mayPrompt: false)
        guard let status = SecretServiceStatus(members: answer.members) else { throw .ended }
        return status
    }

    /// The key of that identifier. If it is locked: unlocked first, where that needs no question to the person or
    /// `mayPrompt` allows one (90 s).
    public func readKey(id: String, mayPrompt: Bool = false) async throws(HelperError) -> Secret {
        let answer = try await ask("read", id: id, mayPrompt: mayPrompt)
        guard let secret = answer.secret else { throw .ended }
        return secret
    }

    /// Keeps a key of 1 to 1,024 bytes under an identifier that is not in use (1 to 128 letters, digits, `.`, `_` and
    /// `-`), and reads it back to be sure.
    public func createKey(id: String, key: Secret, mayPrompt: Bool = false) async throws(HelperError) {
        guard (1...SecretServiceClient.maxSecret).contains(key.count) else {
            throw .secretService(.failed(reason: "a secret has 1 to \(SecretServiceClient.maxSecret) bytes"))
        }
        _ = try await ask("create", id: id, mayPrompt: mayPrompt, secret: key)
    }

    /// Deletes the key of that identifier; `notFound` if there is none.
    public func deleteKey(id: String, mayPrompt: Bool = false) async throws(HelperError) {
        _ = try await ask("delete", id: id, mayPrompt: mayPrompt)
    }

    /// Unlocks the key of that identifier, or without one the keyring for new keys.
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
