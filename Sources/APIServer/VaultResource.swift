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
        try await call.ask { () throws(BrokerError) in try await broker.unlockVault(passphrase: passphrase) }
        return ServerResponse(json: vault())
    }

    func rekeyVault(_ call: Call) async throws(Problem) -> ServerResponse {
        guard let word = try call.text("key_source") else { throw call.invalid("key_source", "it is required") }
        guard let choice = KeySourceChoice(rawValue: word) else {
            let words = KeySourceChoice.allCases.map(\.rawValue).joined(separator: ", ")
            throw call.invalid("key_source", "it is one of: \(words)")
        }
        let passphrase = try call.secret("passphrase")
        try await call.ask { () throws(BrokerError) in
            try await broker.rekeyVault(to: choice, passphrase: passphrase)
        }
        return ServerResponse(json: vault())
    }

    /// The vault as `GET /v1/status` shows it.
    func vault() -> JSON {
        let status = broker.vault.status
        var object = JSONObject([.init("kind", .string(status.kind)), .init("locked", .bool(status.isLocked))])
        object["reason"] = status.reason.map { .string($0) }
        object["key_source"] = .string(status.keySource)
        object["protects"] = .string(status.protects)
        return .object(object)
    }
}
