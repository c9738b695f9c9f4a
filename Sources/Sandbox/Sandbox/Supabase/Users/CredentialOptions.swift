internal import Encodings
internal import StrictJSON

/// What an authenticator is asked, as JSON (Web Authentication level 3, sections 5.1.9 and 5.1.10).
extension PasskeyCeremony {
    /// For `navigator.credentials.create()`. A resident key can be found without its identifier, as a passkey has to be.
    func creationOptions(for user: SupabaseUser, except known: [Credential], isResident: Bool) -> JSON {
        let name = JSON.string(user.email.isEmpty ? user.phone : user.email)
        let selection: JSON =
            isResident
            ? ["residentKey": "required", "requireResidentKey": true, "userVerification": "preferred"]
            : ["requireResidentKey": false, "userVerification": "preferred"]
        var options = JSONObject([
            .init("rp", ["name": .string(party.id), "id": .string(party.id)]),
            .init(
                "user",
                ["id": .string(Base64URL.encode(Array(user.id.utf8))), "name": name, "displayName": name]),
            .init("challenge", .string(Base64URL.encode(challenge))),
            .init("pubKeyCredParams", [["type": "public-key", "alg": .integer(PasskeyCeremony.es256)]]),
            .init("timeout", 300_000), .init("authenticatorSelection", selection), .init("attestation", "none"),
        ])
        if !known.isEmpty { options["excludeCredentials"] = PasskeyCeremony.descriptors(known) }
        return .object(options)
    }

    /// For `navigator.credentials.get()`; without known credentials, for any resident key.
    func requestOptions(among known: [Credential] = []) -> JSON {
        var options = JSONObject([
            .init("challenge", .string(Base64URL.encode(challenge))), .init("timeout", 300_000),
            .init("rpId", .string(party.id)), .init("userVerification", "preferred"),
        ])
        if !known.isEmpty { options["allowCredentials"] = PasskeyCeremony.descriptors(known) }
        return .object(options)
    }

    private static func descriptors(_ known: [Credential]) -> JSON {
        .array(known.map { ["type": "public-key", "id": .string(Base64URL.encode($0.id))] })
    }
}
