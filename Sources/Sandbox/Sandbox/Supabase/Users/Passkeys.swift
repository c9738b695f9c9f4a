internal import Cryptography
internal import LocalHTTP
internal import RingbackBase

/// A passkey of a user.
struct SupabasePasskey {
    let id: String
    var credential: PasskeyCeremony.Credential
    var name = ""
    let createdAt: SupabaseInstant
    var lastUsedAt: SupabaseInstant?

    var json: JSON {
        var members = JSONObject([.init("id", .string(id))])
        if !name.isEmpty { members["friendly_name"] = .string(name) }
        members["created_at"] = .string(createdAt.text)
        members["last_used_at"] = lastUsedAt.map { .string($0.text) }
        return .object(members)
    }
}

/// A challenge for an authenticator: it is accepted once, within five minutes.
struct SupabasePasskeyChallenge {
    let bytes = RandomToken.bytes(32)
    /// The user who adds a passkey; nil for a sign-in.
    let userID: String?
    let expiresAt: Int
}

/// `/passkeys`: signing in with one; adding, listing, naming and removing them.
struct SupabasePasskeys {
    private static let challengeLifetime = 300
    /// Bytes.
    private static let maxName = 120

    private var challenges: [String: SupabasePasskeyChallenge] = [:]

    mutating func answer(
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts
    ) throws(SupabaseError) -> ServerResponse {
        guard call.settings.allowsPasskeys else {
            throw SupabaseError(404, "passkey_disabled", "Passkeys are disabled")
        }
        switch (call.method, call.parts.dropFirst().joined(separator: "/")) {
        case ("POST", "authentication/options"): return ask(call)
        case ("POST", "authentication/verify"): return try signIn(call, &accounts)
        case ("POST", "registration/options"): return try askForNew(call, accounts)
        case ("POST", "registration/verify"): return try add(call, &accounts)
        case ("GET", ""):
            return SupabaseResponses.json(.array(try accounts.authenticate(call).user.passkeys.map(\.json)))
        case ("PATCH", _): return try rename(call, &accounts)
        case ("DELETE", _): return try remove(call, &accounts)
        default: return SupabaseResponses.empty(405)
        }
    }

    private static func ceremony(_ challenge: SupabasePasskeyChallenge, _ call: SupabaseCall) -> PasskeyCeremony {
        PasskeyCeremony(party: call.settings.relyingParty, challenge: challenge.bytes)
    }

    // MARK: Challenges

    private mutating func newChallenge(
        for userID: String?, _ call: SupabaseCall
    ) -> (id: String, challenge: SupabasePasskeyChallenge) {
        let limit = call.now - SupabasePasskeys.challengeLifetime
        challenges = challenges.filter { $0.value.expiresAt > limit }
        let challenge = SupabasePasskeyChallenge(
            userID: userID, expiresAt: call.now + SupabasePasskeys.challengeLifetime)
        let id = SupabaseText.uuid()
        challenges[id] = challenge
        return (id, challenge)
    }

    /// Uses up the challenge, whatever the result, and returns it with the credential of the request.
    private mutating func consume(
        of userID: String?, _ call: SupabaseCall
    ) throws(SupabaseError) -> (challenge: SupabasePasskeyChallenge, credential: JSONObject) {
        let body = try call.body()
        let id = try body.text("challenge_id")
        guard !id.isEmpty else { throw .validation("challenge_id is required") }
        guard let credential = try body.object("credential") else { throw .validation("credential is required") }
        guard SupabaseText.isUUID(id) else { throw .validation("challenge_id must be a valid UUID") }
        guard let challenge = challenges[id], challenge.userID == userID else {
            throw SupabaseError(400, "webauthn_challenge_not_found", "Challenge not found or already used")
        }
        challenges[id] = nil
        guard call.now <= challenge.expiresAt else {
            throw SupabaseError(400, "webauthn_challenge_expired", "Challenge has expired")
        }
        return (challenge, credential)
    }

    private static let unverified = SupabaseError(
        400, "webauthn_verification_failed", "Credential verification failed")

    private static func answer(_ id: String, _ options: JSON, _ challenge: SupabasePasskeyChallenge) -> ServerResponse {
        SupabaseResponses.json([
            "challenge_id": .string(id), "options": options, "expires_at": .integer(challenge.expiresAt),
        ])
    }

    // MARK: Signing in

    private mutating func ask(_ call: SupabaseCall) -> ServerResponse {
        let (id, challenge) = newChallenge(for: nil, call)
        return SupabasePasskeys.answer(id, SupabasePasskeys.ceremony(challenge, call).requestOptions(), challenge)
    }

    private mutating func signIn(
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts
    ) throws(SupabaseError) -> ServerResponse {
        let (challenge, credential) = try consume(of: nil, call)
        guard let claim = PasskeyCeremony.claim(credential), var user = accounts.users[claim.handle],
            let index = user.passkeys.firstIndex(where: { $0.credential.id == claim.credentialID }),
            let count = SupabasePasskeys.ceremony(challenge, call).assertion(
                credential, by: user.passkeys[index].credential)
        else { throw SupabasePasskeys.unverified }
        if !user.email.isEmpty, user.emailConfirmedAt == nil {
            throw SupabaseError(403, "email_not_confirmed", "Email not confirmed")
        }
        if !user.phone.isEmpty, user.phoneConfirmedAt == nil {
            throw SupabaseError(403, "phone_not_confirmed", "Phone not confirmed")
        }
        if user.isBanned(at: call.now) { throw SupabaseError(403, "user_banned", "User is banned") }
        user.passkeys[index].credential.signCount = count
        user.passkeys[index].lastUsedAt = call.instant()
        accounts.users.save(user, at: call.now)
        return try accounts.signIn(user.id, by: "passkey", call)
    }

    // MARK: Adding

    private static func authenticateForAdding(
        _ call: SupabaseCall, _ accounts: SupabaseAccounts
    ) throws(SupabaseError) -> SupabaseUser {
        let (user, session) = try accounts.authenticate(call)
        guard !user.isAnonymous else {
            throw SupabaseError(403, "no_authorization", "Anonymous user not allowed to perform these actions")
        }
        guard !user.isManaged else { throw .validation("SSO users cannot register passkeys", status: 422) }
        try SupabasePasskeys.checkLevel(user, session)
        return user
    }

    private static func checkLevel(_ user: SupabaseUser, _ session: SupabaseSession) throws(SupabaseError) {
        guard !user.hasVerifiedFactor || session.level == "aal2" else {
            throw SupabaseError(403, "insufficient_aal", "AAL2 session is required to manage passkeys")
        }
    }

    private mutating func askForNew(
        _ call: SupabaseCall, _ accounts: SupabaseAccounts
    ) throws(SupabaseError) -> ServerResponse {
        let user = try SupabasePasskeys.authenticateForAdding(call, accounts)
        guard user.passkeys.count < call.settings.maxPasskeys else {
            throw SupabaseError(422, "too_many_passkeys", "Maximum number of passkeys reached")
        }
        let (id, challenge) = newChallenge(for: user.id, call)
        let options = SupabasePasskeys.ceremony(challenge, call).creationOptions(
            for: user, except: user.passkeys.map(\.credential), isResident: true)
        return SupabasePasskeys.answer(id, options, challenge)
    }

    private mutating func add(
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts
    ) throws(SupabaseError) -> ServerResponse {
        var user = try SupabasePasskeys.authenticateForAdding(call, accounts)
        let (challenge, credential) = try consume(of: user.id, call)
        guard let creation = SupabasePasskeys.ceremony(challenge, call).creation(credential) else {
            throw SupabasePasskeys.unverified
        }
        let isKnown = accounts.users.all.contains { user in user.passkeys.contains { $0.credential.id == creation.id } }
        guard !isKnown else {
            throw SupabaseError(422, "webauthn_credential_exists", "This credential is already registered")
        }
        let passkey = SupabasePasskey(
            id: SupabaseText.uuid(), credential: creation, createdAt: call.instant())
        user.passkeys.append(passkey)
        accounts.users.save(user, at: call.now)
        return SupabaseResponses.json(passkey.json)
    }

    // MARK: Managing

    private static func index(_ id: String, of user: SupabaseUser) throws(SupabaseError) -> Int {
        guard SupabaseText.isUUID(id), let index = user.passkeys.firstIndex(where: { $0.id == id.lowercased() }) else {
            throw .validation("Passkey not found", status: 404)
        }
        return index
    }

    private func rename(
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts
    ) throws(SupabaseError) -> ServerResponse {
        var user = try accounts.authenticate(call).user
        let name = try call.body().text("friendly_name")
        guard !name.isEmpty else { throw .validation("friendly_name is required") }
        guard name.utf8.count <= SupabasePasskeys.maxName else {
            throw .validation("friendly_name must be 120 characters or less")
        }
        let index = try SupabasePasskeys.index(call.parts[1], of: user)
        user.passkeys[index].name = name
        accounts.users.save(user, at: call.now)
        return SupabaseResponses.json(user.passkeys[index].json)
    }

    private func remove(
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts
    ) throws(SupabaseError) -> ServerResponse {
        var (user, session) = try accounts.authenticate(call)
        try SupabasePasskeys.checkLevel(user, session)
        user.passkeys.remove(at: try SupabasePasskeys.index(call.parts[1], of: user))
        accounts.users.save(user, at: call.now)
        return SupabaseResponses.empty(204)
    }
}

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
    func credential(by answer: WebAuthnResponse, of user: SupabaseUser) throws(SupabaseError)
        -> PasskeyCeremony.Credential
    {
        guard answer.type == "create" else {
            let known = user.factors.compactMap(\.credential).first { $0.id == answer.id }
            guard !makesKey, let known, answer.isOf(user), ceremony.assertion(answer.credential, by: known) != nil
            else {
                throw SupabaseError(500, "unexpected_failure", "Failed to validate WebAuthn MFA response")
            }
            return known
        }
        guard makesKey, let made = ceremony.creation(answer.credential) else {
            throw SupabaseError(
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
    init(reading body: SupabaseBody) throws(SupabaseError) {
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
