internal import BrokerCore
internal import LocalHTTP
internal import RingbackAPI
internal import StrictJSON
internal import SupabaseAuth

/// Passkeys of a user at a Supabase project. The ceremony with the authenticator is the app's: what it needs is handed
/// out as it came, and its answer is passed on.
extension SocketAPI {
    func listPasskeys(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let passkeys = try await call.ask { () throws(BrokerError) in try await broker.passkeys(name) }
        return ServerResponse(json: ["passkeys": .array(passkeys.map { .object($0.json) })])
    }

    /// What an authenticator needs to make a passkey.
    func beginPasskey(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let challenge = try await call.ask { () throws(BrokerError) in try await broker.passkeyRegistration(name) }
        return ServerResponse(json: .object(challenge.json))
    }

    func registerPasskey(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        guard let id = try call.text("challenge_id") else { throw call.invalid("challenge_id", "it is required") }
        guard let credential = try call.object("credential") else {
            throw call.invalid("credential", "it is required")
        }
        let passkey = try await call.ask { () throws(BrokerError) in
            try await broker.registerPasskey(name, challenge: id, credential: credential)
        }
        return ServerResponse(status: 201, json: .object(passkey.json))
    }

    func renamePasskey(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let id = call.parameters["id"] ?? ""
        guard let title = try call.text("friendly_name") else { throw call.invalid("friendly_name", "it is required") }
        let passkey = try await call.ask { () throws(BrokerError) in
            try await broker.renamePasskey(name, id, to: title)
        }
        return ServerResponse(json: .object(passkey.json))
    }

    func removePasskey(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let id = call.parameters["id"] ?? ""
        try await call.ask { () throws(BrokerError) in try await broker.removePasskey(name, id) }
        return ServerResponse(json: ["account": .string(name.rawValue), "removed": .string(id)])
    }

    /// What an authenticator answered for a flow, in place of a code.
    func verifyFlow(_ id: String, credential: JSONObject, _ call: Call) async throws(Problem) -> ServerResponse {
        for other in ["code", "token_hash", "email", "phone", "type"] where call.has(other) {
            throw call.invalid(other, "it does not go with a credential")
        }
        let view = try await call.ask { () throws(BrokerError) in try await broker.verify(id, credential: credential) }
        return ServerResponse(json: flow(view, call.language))
    }
}
