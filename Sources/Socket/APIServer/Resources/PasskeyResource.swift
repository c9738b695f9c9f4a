internal import BrokerCore
internal import LocalHTTP
internal import RingbackAPI
internal import StrictJSON
internal import SupabaseAuth
internal import SupabaseSignIn

/// Passkeys of a user at a Supabase project. The app performs the ceremony with the authenticator. The options and
/// the response are passed on unchanged.
struct PasskeyResource: Resource {
    let api: SocketAPI

    static let routes: [Route] = [
        Route(
            .beginPasskey,
            "Request the options for a new passkey; one response is accepted, within five minutes",
            .json(.passkeyChallenge), errors: .ofSession, PasskeyResource.beginPasskey),
        Route(.listPasskeys, "The user's passkeys", .json(.passkeys), errors: .ofSession, PasskeyResource.listPasskeys),
        Route(
            .registerPasskey, "Add the passkey that an authenticator has made",
            body: .members([
                .required("challenge_id", .string), .required("credential", .anyObject, Schema.credentialText),
            ]), statuses: [201], .json(.passkey), errors: .ofSession, PasskeyResource.registerPasskey),
        Route(
            .renamePasskey, "Rename a passkey", body: .members([.required("friendly_name", .lengths(1...120))]),
            .json(.passkey), errors: .ofSession, PasskeyResource.renamePasskey),
        Route(
            .removePasskey, "Remove a passkey: it cannot be used for sign-ins any more", .json(.removedPasskey),
            errors: .ofSession, PasskeyResource.removePasskey),
    ]

    func listPasskeys(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let passkeys = try await call.ask { () throws(BrokerError) in try await broker.supabase.passkeys(name) }
        return ServerResponse(json: ["passkeys": .array(passkeys.map { .object($0.json) })])
    }

    /// The options that an authenticator needs to make a passkey.
    func beginPasskey(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let challenge = try await call.ask { () throws(BrokerError) in
            try await broker.supabase.passkeyRegistration(name)
        }
        return ServerResponse(json: .object(challenge.json))
    }

    func registerPasskey(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        guard let id = try call.text("challenge_id") else { throw call.invalid("challenge_id", "it is required") }
        guard let credential = try call.object("credential") else {
            throw call.invalid("credential", "it is required")
        }
        let passkey = try await call.ask { () throws(BrokerError) in
            try await broker.supabase.registerPasskey(name, challenge: id, credential: credential)
        }
        return ServerResponse(status: 201, json: .object(passkey.json))
    }

    func renamePasskey(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let id = call.parameters["id"] ?? ""
        guard let title = try call.text("friendly_name") else { throw call.invalid("friendly_name", "it is required") }
        let passkey = try await call.ask { () throws(BrokerError) in
            try await broker.supabase.renamePasskey(name, id, to: title)
        }
        return ServerResponse(json: .object(passkey.json))
    }

    func removePasskey(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let id = call.parameters["id"] ?? ""
        try await call.ask { () throws(BrokerError) in try await broker.supabase.removePasskey(name, id) }
        return ServerResponse(json: ["account": .string(name.rawValue), "removed": .string(id)])
    }
}

extension Schema {
    static let credentialText = "The authenticator's response, as PublicKeyCredential.toJSON() writes it"
}

extension Component {
    fileprivate static let passkey = Component(
        "Passkey",
        [
            .required("id", .string), .optional("friendly_name", .string), .optional("created_at", .string),
            .optional("last_used_at", .string),
        ])
    fileprivate static let passkeys = Component("Passkeys", [.required("passkeys", .array(.component(.passkey)))])
    fileprivate static let passkeyChallenge = Component(
        "PasskeyChallenge",
        [
            .required("challenge_id", .string),
            .required(
                "options", .anyObject, "For PublicKeyCredential.parseCreationOptionsFromJSON() or its like"),
            .optional("expires_at", .integer),
        ])
    fileprivate static let removedPasskey = Component(
        "RemovedPasskey", [.required("account", .string), .required("removed", .string)])
}
