internal import Cryptography
internal import Encodings
internal import StrictJSON

/// What was asked of an authenticator for a second factor: to make a key for one that is not verified yet, else to use one
/// of the keys that the user's factors have.
struct WebAuthnQuestion {
    let ceremony: PasskeyCeremony
    let makesKey: Bool
    let options: JSON

    init(_ factor: SupabaseFactor, of user: SupabaseUser, by party: PasskeyCeremony.Party) {
        ceremony = PasskeyCeremony(party: party, challenge: RandomToken.bytes(32))
        makesKey = !factor.isVerified
        let known = user.factors.compactMap(\.credential)
        options =
            makesKey
            ? ceremony.creationOptions(for: user, except: known, isResident: false)
            : ceremony.requestOptions(among: known)
    }

    private var type: String { makesKey ? "create" : "request" }

    /// The member of a challenge; the options are wrapped as the browser's interface has them.
    var json: JSON { ["type": .string(type), "credential_options": ["publicKey": options]] }

    /// The credential that has answered: the one that was made, or the one that was used. The server says HTTP 500 of an
    /// answer that it does not believe.
    func credential(by answer: WebAuthnResponse, of user: SupabaseUser) throws(SupabaseErrorResponse)
        -> PasskeyCeremony.Credential
    {
        guard answer.type == "create" else {
            let known = user.factors.compactMap(\.credential).first { $0.id == answer.id }
            guard !makesKey, let known, answer.isOf(user), ceremony.assertion(answer.credential, by: known) != nil
            else {
                throw SupabaseErrorResponse(500, "unexpected_failure", "Failed to validate WebAuthn MFA response")
            }
            return known
        }
        guard makesKey, let made = ceremony.creation(answer.credential) else {
            throw SupabaseErrorResponse(
                500, "unexpected_failure", "Unexpected failure, please check server logs for more information")
        }
        return made
    }
}

/// The member `webauthn` of a verification.
struct WebAuthnResponse {
    let type: String
    let credential: JSONObject
    let id: [UInt8]

    /// Refuses what cannot be read, before any challenge is looked at.
    init(reading body: SupabaseBody) throws(SupabaseErrorResponse) {
        guard let member = try body.object("webauthn").map({ SupabaseBody(members: $0) }) else {
            throw .validation("WebAuthn config required")
        }
        type = try member.text("type")
        guard type == "create" || type == "request" else {
            throw .validation("WebAuthn type must be create or request")
        }
        guard let credential = try member.object("credential_response") else {
            throw .validation("credential_response required")
        }
        self.credential = credential
        let needed = type == "create" ? ["attestationObject"] : ["authenticatorData", "signature"]
        guard let id = PasskeyCeremony.identifier(credential), let response = credential["response"]?.object,
            (needed + ["clientDataJSON"]).allSatisfy({ response[$0]?.string != nil })
        else { throw .validation("Invalid credential_response") }
        self.id = id
    }

    /// A key that is not resident may leave its user's handle out.
    func isOf(_ user: SupabaseUser) -> Bool {
        guard let handle = credential["response"]?["userHandle"]?.string, !handle.isEmpty else { return true }
        return handle == Base64URL.encode(Array(user.id.utf8))
    }

    /// What the server keeps of it, and shows in the user's document.
    func json(challenge: String, factor: String) -> JSON {
        [
            "challenge": ["challenge_id": .string(challenge), "factor_id": .string(factor)], "type": .string(type),
            "credential_response": .object(credential),
        ]
    }
}
