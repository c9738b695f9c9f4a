internal import Cryptography
internal import LocalHTTP
internal import RingbackBase

struct SupabasePasskey: JSONConvertible {
    let id: String
    var credential: PasskeyCeremony.Credential
    var name = ""
    let createdAt: SupabaseInstant
    var lastUsedAt: SupabaseInstant?

    var jsonValue: JSON {
        .object([
            "id": id, "friendly_name": name.isEmpty ? nil : name, "created_at": createdAt, "last_used_at": lastUsedAt,
        ])
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
extension SupabaseProject {
    private static let maxPasskeyBytes = 120
    private static let levelToManage = "AAL2 session is required to manage passkeys"

    func passkeys(_ call: SupabaseCall) throws -> ServerResponse {
        SupabaseResponses.json(value: try authenticate(call).user.passkeys)
    }

    private static func ceremony(_ challenge: SupabasePasskeyChallenge, _ call: SupabaseCall) -> PasskeyCeremony {
        PasskeyCeremony(party: call.settings.relyingParty, challenge: challenge.bytes)
    }

    private mutating func newChallenge(
        for userID: String?, _ call: SupabaseCall
    ) -> (id: String, challenge: SupabasePasskeyChallenge) {
        let limit = call.now - Self.challengeLifetime
        passkeyChallenges = passkeyChallenges.filter { $0.value.expiresAt > limit }
        let challenge = SupabasePasskeyChallenge(userID: userID, expiresAt: call.now + Self.challengeLifetime)
        let id = SupabaseText.uuid()
        passkeyChallenges[id] = challenge
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
        let known = passkeyChallenges[id]?.userID == userID ? passkeyChallenges[id] : nil
        let challenge = try unwrap(known, 400, "webauthn_challenge_not_found", "Challenge not found or already used")
        passkeyChallenges[id] = nil
        try require(call.now <= challenge.expiresAt, 400, "webauthn_challenge_expired", "Challenge has expired")
        return (challenge, credential)
    }

    private static let unverified = SupabaseError(400, "webauthn_verification_failed", "Credential verification failed")

    private func asking(_ options: JSONObject, _ id: String, _ challenge: SupabasePasskeyChallenge) -> ServerResponse {
        SupabaseResponses.json(["challenge_id": id, "options": options, "expires_at": challenge.expiresAt])
    }

    mutating func askPasskey(_ call: SupabaseCall) -> ServerResponse {
        let (id, challenge) = newChallenge(for: nil, call)
        return asking(Self.ceremony(challenge, call).requestOptions(), id, challenge)
    }

    mutating func signInByPasskey(_ call: SupabaseCall) throws -> ServerResponse {
        let (challenge, credential) = try consume(of: nil, call)
        guard let claim = PasskeyCeremony.claim(credential), var user = users[claim.handle],
            let index = user.passkeys.firstIndex(where: { $0.credential.id == claim.credentialID }),
            let count = Self.ceremony(challenge, call).assertion(credential, by: user.passkeys[index].credential)
        else { throw Self.unverified }
        let (email, phone) = (user.email, user.phone)
        try require(email.isEmpty || user.emailConfirmedAt != nil, 403, "email_not_confirmed", "Email not confirmed")
        try require(phone.isEmpty || user.phoneConfirmedAt != nil, 403, "phone_not_confirmed", "Phone not confirmed")
        try user.checkBan(at: call.now)
        user.passkeys[index].credential.signCount = count
        user.passkeys[index].lastUsedAt = call.instant()
        users.save(user, at: call.now)
        return try signIn(user.id, by: "passkey", call)
    }

    private func authenticateForAdding(_ call: SupabaseCall) throws -> SupabaseUser {
        let (user, session) = try authenticateNamed(call)
        try require(!user.isManaged, "SSO users cannot register passkeys", status: 422)
        try session.checkLevel(of: user, 403, Self.levelToManage)
        return user
    }

    mutating func askNewPasskey(_ call: SupabaseCall) throws -> ServerResponse {
        let user = try authenticateForAdding(call)
        try require(
            user.passkeys.count < call.settings.maxPasskeys, 422, "too_many_passkeys",
            "Maximum number of passkeys reached")
        let (id, challenge) = newChallenge(for: user.id, call)
        let options = Self.ceremony(challenge, call).creationOptions(
            for: user, except: user.passkeys.map(\.credential), isResident: true)
        return asking(options, id, challenge)
    }

    mutating func addPasskey(_ call: SupabaseCall) throws -> ServerResponse {
        var user = try authenticateForAdding(call)
        let (challenge, credential) = try consume(of: user.id, call)
        guard let creation = Self.ceremony(challenge, call).creation(credential) else { throw Self.unverified }
        let isKnown = users.all.contains { user in user.passkeys.contains { $0.credential.id == creation.id } }
        try require(!isKnown, 422, "webauthn_credential_exists", "This credential is already registered")
        let passkey = SupabasePasskey(id: SupabaseText.uuid(), credential: creation, createdAt: call.instant())
        user.passkeys.append(passkey)
        users.save(user, at: call.now)
        return SupabaseResponses.json(value: passkey)
    }

    private static func passkeyIndex(_ id: String, of user: SupabaseUser) throws -> Int {
        try unwrap(user.passkeys.firstIndex { $0.id == id.lowercased() }, "Passkey not found", status: 404)
    }

    mutating func renamePasskey(_ call: SupabaseCall) throws -> ServerResponse {
        var user = try authenticate(call).user
        let name = try call.body().text("friendly_name")
        try require(!name.isEmpty, "friendly_name is required")
        try require(name.utf8.count <= Self.maxPasskeyBytes, "friendly_name must be 120 characters or less")
        let index = try Self.passkeyIndex(call.parts[1], of: user)
        user.passkeys[index].name = name
        users.save(user, at: call.now)
        return SupabaseResponses.json(value: user.passkeys[index])
    }

    mutating func removePasskey(_ call: SupabaseCall) throws -> ServerResponse {
        var (user, session) = try authenticate(call)
        try session.checkLevel(of: user, 403, Self.levelToManage)
        user.passkeys.remove(at: try Self.passkeyIndex(call.parts[1], of: user))
        users.save(user, at: call.now)
        return SupabaseResponses.empty(204)
    }
}

/// What an authenticator is asked, as JSON (Web Authentication level 3, sections 5.1.9 and 5.1.10).
extension PasskeyCeremony {
    /// For `navigator.credentials.create()`. A resident key can be found without its identifier, as passkeys must be.
    func creationOptions(for user: SupabaseUser, except known: [Credential], isResident: Bool) -> JSONObject {
        let name = user.email.isEmpty ? user.phone : user.email
        let selection: JSONObject = [
            "residentKey": isResident ? "required" : nil, "requireResidentKey": isResident,
            "userVerification": "preferred",
        ]
        return [
            "rp": ["name": party.id, "id": party.id] as JSONObject,
            "user": ["id": Base64URL.encode(Array(user.id.utf8)), "name": name, "displayName": name] as JSONObject,
            "challenge": Base64URL.encode(challenge),
            "pubKeyCredParams": [["type": "public-key", "alg": PasskeyCeremony.es256] as JSONObject],
            "timeout": 300_000, "authenticatorSelection": selection, "attestation": "none",
            "excludeCredentials": PasskeyCeremony.descriptors(known),
        ] as JSONObject
    }

    /// For `navigator.credentials.get()`; without known credentials, for any resident key.
    func requestOptions(among known: [Credential] = []) -> JSONObject {
        [
            "challenge": Base64URL.encode(challenge), "timeout": 300_000, "rpId": party.id,
            "userVerification": "preferred", "allowCredentials": PasskeyCeremony.descriptors(known),
        ] as JSONObject
    }

    private static func descriptors(_ known: [Credential]) -> [JSONObject]? {
        let all = known.map { ["type": "public-key", "id": Base64URL.encode($0.id)] as JSONObject }
        return all.isEmpty ? nil : all
    }
}

/// What a second factor was asked: to make a key for one that is not verified yet, else to use one of its keys.
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
        ["type": type, "credential_options": ["publicKey": options] as JSONObject] as JSONObject
    }

    /// The credential that was made or used. The server says HTTP 500 of an answer that it does not believe.
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
        let challenge: JSONObject = ["challenge_id": challenge, "factor_id": factor]
        return ["challenge": challenge, "type": type, "credential_response": credential] as JSONObject
    }
}
