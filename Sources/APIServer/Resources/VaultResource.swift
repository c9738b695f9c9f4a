internal import BrokerCore
internal import LocalHTTP
internal import RingbackAPI
internal import Secrets
internal import SessionVault
internal import StrictJSON

extension SocketAPI {
    func lockVault(_ call: Call) async throws(Problem) -> ServerResponse {
        try await call.ask { () throws(BrokerError) in try await broker.lockVault() }
        // What was encoded for the hot path holds tokens.
        encoded.forget(nil)
        return ServerResponse(json: vault())
    }

    func unlockVault(_ call: Call) async throws(Problem) -> ServerResponse {
        let passphrase = try call.secret("passphrase")
        let pid: Int32 = if case .local(_, let pid) = call.request.peer { pid } else { 0 }
        try await forPerson(call) { () throws(BrokerError) in
            try await broker.unlockVault(passphrase: passphrase, by: pid)
        }
        return ServerResponse(json: vault())
    }

    func rekeyVault(_ call: Call) async throws(Problem) -> ServerResponse {
        guard let word = try call.text("key_source") else { throw call.invalid("key_source", "it is required") }
        guard let choice = KeySourceChoice(rawValue: word) else {
            let words = KeySourceChoice.allCases.map(\.rawValue).joined(separator: ", ")
            throw call.invalid("key_source", "it is one of: \(words)")
        }
        let passphrase = try call.secret("passphrase")
        if choice == .passphrase, passphrase == nil {
            throw call.invalid("passphrase", "it is required for key_source passphrase")
        }
        try await forPerson(call) { () throws(BrokerError) in
            try await broker.rekeyVault(to: choice, passphrase: passphrase)
        }
        return ServerResponse(json: vault())
    }

    /// A person asks: a keyring that is locked may put its question.
    private func forPerson(
        _ call: Call, _ body: @Sendable () async throws(BrokerError) -> Void
    ) async throws(Problem) {
        let outcome: Result<Void, Problem> = await KeyRequest.$isByPerson.withValue(true) {
            do throws(Problem) {
                return .success(try await call.ask(body))
            } catch {
                return .failure(error)
            }
        }
        try outcome.get()
    }

    /// The vault as `GET /v1/status` shows it.
    func vault() -> JSON {
        let status = broker.vault.status
        var object = JSONObject([.init("kind", .string(status.kind)), .init("locked", .bool(status.isLocked))])
        object["reason"] = status.reason.map { .string($0) }
        object["key_source"] = .string(status.keySource)
        object["protects"] = .string(status.protects)
        if status.needsNewPassphrase { object["needs_new_passphrase"] = true }
        object["other_key_source"] = status.otherKeySource.map { .string($0) }
        return .object(object)
    }
}
