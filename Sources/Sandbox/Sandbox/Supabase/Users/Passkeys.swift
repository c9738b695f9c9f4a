internal import Cryptography
internal import LocalHTTP
internal import RingbackBase

/// A passkey of a user.
struct SupabasePasskey: JSONValue {
    let id: String
    var credential: PasskeyCeremony.Credential
    var name = ""
    let createdAt: SupabaseInstant
    var lastUsedAt: SupabaseInstant?

    var json: JSON {
        JSONObject(of: [
            "id": id, "friendly_name": name.isEmpty ? nil : name, "created_at": createdAt, "last_used_at": lastUsedAt,
        ]).json
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

    mutating func answer(_ call: SupabaseCall, _ accounts: inout SupabaseAccounts) throws -> ServerResponse {
        try require(call.settings.allowsPasskeys, 404, "passkey_disabled", "Passkeys are disabled")
        switch (call.method, call.parts.dropFirst().joined(separator: "/")) {
        case ("POST", "authentication/options"): return ask(call)
        case ("POST", "authentication/verify"): return try signIn(call, &accounts)
        case ("POST", "registration/options"): return try askForNew(call, accounts)
        case ("POST", "registration/verify"): return try add(call, &accounts)
        case ("GET", ""): return SupabaseResponses.json(value: try accounts.authenticate(call).user.passkeys)
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
    ) throws -> (challenge: SupabasePasskeyChallenge, credential: JSONObject) {
        let body = try call.body()
        let id = try body.text("challenge_id")
        try require(!id.isEmpty, "challenge_id is required")
        let credential = try unwrap(body.object("credential"), "credential is required")
        try require(SupabaseText.isUUID(id), "challenge_id must be a valid UUID")
        let known = challenges[id]?.userID == userID ? challenges[id] : nil
        let challenge = try unwrap(known, 400, "webauthn_challenge_not_found", "Challenge not found or already used")
        challenges[id] = nil
        try require(call.now <= challenge.expiresAt, 400, "webauthn_challenge_expired", "Challenge has expired")
        return (challenge, credential)
    }

    private static let unverified = SupabaseError(400, "webauthn_verification_failed", "Credential verification failed")

    private static func answer(
        _ id: String, _ options: JSONObject, _ challenge: SupabasePasskeyChallenge
    ) -> ServerResponse {
        SupabaseResponses.json(["challenge_id": id, "options": options, "expires_at": challenge.expiresAt])
    }

    // MARK: Signing in

    private mutating func ask(_ call: SupabaseCall) -> ServerResponse {
        let (id, challenge) = newChallenge(for: nil, call)
        return SupabasePasskeys.answer(id, SupabasePasskeys.ceremony(challenge, call).requestOptions(), challenge)
    }

    private mutating func signIn(_ call: SupabaseCall, _ accounts: inout SupabaseAccounts) throws -> ServerResponse {
        let (challenge, credential) = try consume(of: nil, call)
        guard let claim = PasskeyCeremony.claim(credential), var user = accounts.users[claim.handle],
            let index = user.passkeys.firstIndex(where: { $0.credential.id == claim.credentialID }),
            let count = SupabasePasskeys.ceremony(challenge, call).assertion(
                credential, by: user.passkeys[index].credential)
        else { throw SupabasePasskeys.unverified }
        let (email, phone) = (user.email, user.phone)
        try require(email.isEmpty || user.emailConfirmedAt != nil, 403, "email_not_confirmed", "Email not confirmed")
        try require(phone.isEmpty || user.phoneConfirmedAt != nil, 403, "phone_not_confirmed", "Phone not confirmed")
        try user.checkBan(at: call.now)
        user.passkeys[index].credential.signCount = count
        user.passkeys[index].lastUsedAt = call.instant()
        accounts.users.save(user, at: call.now)
        return try accounts.signIn(user.id, by: "passkey", call)
    }

    // MARK: Adding

    private static func authenticateForAdding(
        _ call: SupabaseCall, _ accounts: SupabaseAccounts
    ) throws -> SupabaseUser {
        let (user, session) = try accounts.authenticateNamed(call)
        try require(!user.isManaged, "SSO users cannot register passkeys", status: 422)
        try SupabasePasskeys.checkLevel(user, session)
        return user
    }

    private static func checkLevel(_ user: SupabaseUser, _ session: SupabaseSession) throws {
        try require(
            session.level == "aal2" || !user.hasVerifiedFactor, 403, "insufficient_aal",
            "AAL2 session is required to manage passkeys")
    }

    private mutating func askForNew(_ call: SupabaseCall, _ accounts: SupabaseAccounts) throws -> ServerResponse {
        let user = try SupabasePasskeys.authenticateForAdding(call, accounts)
        try require(
            user.passkeys.count < call.settings.maxPasskeys, 422, "too_many_passkeys",
            "Maximum number of passkeys reached")
        let (id, challenge) = newChallenge(for: user.id, call)
        let options = SupabasePasskeys.ceremony(challenge, call).creationOptions(
            for: user, except: user.passkeys.map(\.credential), isResident: true)
        return SupabasePasskeys.answer(id, options, challenge)
    }

    private mutating func add(_ call: SupabaseCall, _ accounts: inout SupabaseAccounts) throws -> ServerResponse {
        var user = try SupabasePasskeys.authenticateForAdding(call, accounts)
        let (challenge, credential) = try consume(of: user.id, call)
        guard let creation = SupabasePasskeys.ceremony(challenge, call).creation(credential) else {
            throw SupabasePasskeys.unverified
        }
        let isKnown = accounts.users.all.contains { user in user.passkeys.contains { $0.credential.id == creation.id } }
        try require(!isKnown, 422, "webauthn_credential_exists", "This credential is already registered")
        let passkey = SupabasePasskey(id: SupabaseText.uuid(), credential: creation, createdAt: call.instant())
        user.passkeys.append(passkey)
        accounts.users.save(user, at: call.now)
        return SupabaseResponses.json(value: passkey)
    }

    // MARK: Managing

    private static func index(_ id: String, of user: SupabaseUser) throws -> Int {
        try unwrap(user.passkeys.firstIndex { $0.id == id.lowercased() }, "Passkey not found", status: 404)
    }

    private func rename(_ call: SupabaseCall, _ accounts: inout SupabaseAccounts) throws -> ServerResponse {
        var user = try accounts.authenticate(call).user
        let name = try call.body().text("friendly_name")
        try require(!name.isEmpty, "friendly_name is required")
        try require(name.utf8.count <= SupabasePasskeys.maxName, "friendly_name must be 120 characters or less")
        let index = try SupabasePasskeys.index(call.parts[1], of: user)
        user.passkeys[index].name = name
        accounts.users.save(user, at: call.now)
        return SupabaseResponses.json(value: user.passkeys[index])
    }

    private func remove(_ call: SupabaseCall, _ accounts: inout SupabaseAccounts) throws -> ServerResponse {
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
    func creationOptions(for user: SupabaseUser, except known: [Credential], isResident: Bool) -> JSONObject {
        let name = user.email.isEmpty ? user.phone : user.email
        let selection = JSONObject(of: [
            "residentKey": isResident ? "required" : nil, "requireResidentKey": isResident,
            "userVerification": "preferred",
        ])
        return JSONObject(of: [
            "rp": JSONObject(of: ["name": party.id, "id": party.id]),
            "user": JSONObject(of: ["id": Base64URL.encode(Array(user.id.utf8)), "name": name, "displayName": name]),
            "challenge": Base64URL.encode(challenge),
            "pubKeyCredParams": [JSONObject(of: ["type": "public-key", "alg": PasskeyCeremony.es256])],
            "timeout": 300_000, "authenticatorSelection": selection, "attestation": "none",
            "excludeCredentials": PasskeyCeremony.descriptors(known),
        ])
    }

    /// For `navigator.credentials.get()`; without known credentials, for any resident key.
    func requestOptions(among known: [Credential] = []) -> JSONObject {
        JSONObject(of: [
            "challenge": Base64URL.encode(challenge), "timeout": 300_000, "rpId": party.id,
            "userVerification": "preferred", "allowCredentials": PasskeyCeremony.descriptors(known),
        ])
    }

    /// Nil for none.
    private static func descriptors(_ known: [Credential]) -> [JSONObject]? {
        let all = known.map { JSONObject(of: ["type": "public-key", "id": Base64URL.encode($0.id)]) }
        return all.isEmpty ? nil : all
    }
}

/// What was asked of an authenticator for a second factor: to make a key for one that is not verified yet, else to use one
/// of the keys that the user's factors have.
struct WebAuthnQuestion {
    let ceremony: PasskeyCeremony
    let makesKey: Bool
    private let options: JSONObject

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
    var members: JSONObject {
        JSONObject(of: ["type": type, "credential_options": JSONObject(of: ["publicKey": options])])
    }

    /// The credential that has answered: the one that was made, or the one that was used. The server says HTTP 500 of an
    /// answer that it does not believe.
    func credential(by answer: WebAuthnResponse, of user: SupabaseUser) throws -> PasskeyCeremony.Credential {
        guard answer.type == "create" else {
            let known = user.factors.compactMap(\.credential).first { $0.id == answer.id }
            guard !makesKey, let known, answer.isOf(user), ceremony.assertion(answer.credential, by: known) != nil
            else { throw SupabaseError(500, "unexpected_failure", "Failed to validate WebAuthn MFA response") }
            return known
        }
        return try unwrap(
            makesKey ? ceremony.creation(answer.credential) : nil, 500, "unexpected_failure",
            "Unexpected failure, please check server logs for more information")
    }
}

/// The member `webauthn` of a verification.
struct WebAuthnResponse {
    let type: String
    let credential: JSONObject
    let id: [UInt8]

    /// Refuses what cannot be read, before any challenge is looked at.
    init(reading body: SupabaseBody) throws {
        let member = try unwrap(body.object("webauthn").map { SupabaseBody(members: $0) }, "WebAuthn config required")
        type = try member.text("type")
        try require(type == "create" || type == "request", "WebAuthn type must be create or request")
        let credential = try unwrap(member.object("credential_response"), "credential_response required")
        self.credential = credential
        let needed = type == "create" ? ["attestationObject"] : ["authenticatorData", "signature"]
        guard let id = PasskeyCeremony.identifier(credential), let response = credential["response"]?.object,
            (needed + ["clientDataJSON"]).allSatisfy({ response[$0]?.string != nil })
        else { throw SupabaseError("Invalid credential_response") }
        self.id = id
    }

    /// A key that is not resident may leave its user's handle out.
    func isOf(_ user: SupabaseUser) -> Bool {
        guard let handle = credential["response"]?["userHandle"]?.string, !handle.isEmpty else { return true }
        return handle == Base64URL.encode(Array(user.id.utf8))
    }

    /// What the server keeps of it, and shows in the user's document.
    func members(challenge: String, factor: String) -> JSONObject {
        let challenge = JSONObject(of: ["challenge_id": challenge, "factor_id": factor])
        return JSONObject(of: ["challenge": challenge, "type": type, "credential_response": credential])
    }
}
