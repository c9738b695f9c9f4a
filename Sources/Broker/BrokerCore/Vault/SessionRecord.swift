internal import RingbackBase

/// A session as text for the vault. Versions only add members.
enum SessionRecord {
    static let version = 1

    /// The session as JSON, secrets included: only for the vault. `bootID` tells, when the record is read, which boot
    /// its instants since boot belong to, and `machineID` on which machine the vault was.
    static func encode(
        _ session: Session, bootID: String, machineID: String = "", endsAll: Bool = false
    ) -> Secret {
        let object: JSONObject = [
            "version": version, "issuer": session.issuer, "token_endpoint_origin": session.tokenEndpointOrigin,
            "signed_in_at": session.signedInAt.seconds, "refresh_token": session.refreshToken?.revealed(),
            "successor": session.unvalidated?.token.revealed(),
            "presented": session.unvalidated?.presented?.revealed(), "downscoped_to": session.downscopedTo,
            "lost_scopes": session.lostScopes.isEmpty ? nil : session.lostScopes, "subject": session.subject,
            "user": session.user, "scope": session.scope, "boot_id": bootID,
            "machine_id": machineID.isEmpty ? nil : machineID, "moved": session.hasMoved ? true : nil,
            "rotates": session.rotation == .unknown ? nil : session.rotation == .rotates, "end": session.end?.json,
            "proof_key": session.proofKey?.revealed(), "identity": session.identity.map(encode),
            "attachments": session.attachments.isEmpty ? nil : encode(session.attachments),
            "ends_all": endsAll ? true : nil,
            "tokens": session.tokens.filter { !$0.key.isAssertion }.map { encode($0.key, $0.value) },
        ]
        return Secret(bytes: JSON.object(object).serialized())
    }

    private static func encode(_ identity: Session.Identity) -> JSONObject {
        [
            "token": identity.token.revealed(), "audience": identity.audience, "expiry": identity.expiry.json,
            "lifetime": identity.lifetime?.wholeSeconds, "auth_time": identity.authenticationTime?.seconds,
            "azp": identity.authorizedParty, "nonce": identity.nonce?.revealed(),
            "nonce_source": identity.nonceSource?.revealed(), "issuer": identity.issuer,
        ]
    }

    private static func secret(_ json: JSON?) -> Secret? { json?.string.map { Secret($0) } }

    private static func encode(_ key: TokenKey, _ token: AccessToken) -> JSONObject {
        [
            "access_token": token.value.revealed(), "token_type": token.type, "for_scopes": key.scopes,
            "for_audience": key.audience, "for_resource": key.resource, "scope": token.scope,
            "scope_stated": token.isScopeStated ? true : nil, "expiry": token.expiry?.json,
            "lifetime": token.lifetime?.wholeSeconds,
        ]
    }

    enum Failure: Error, Equatable {
        case newer, damaged
        /// It is of a vault that hosts share, and this one is not.
        case shared
        /// It was written by ``ended(_:message:hasMoved:)``, with these values.
        case ended(String?, message: String?, hasMoved: Bool)
    }

    /// The record in the slot of a session that its provider has ended, until the next sign-in or sign-out. If the
    /// daemon is killed right after that, its next start can still say what happened to the session.
    static func ended(_ word: String?, message: String? = nil, hasMoved: Bool = false) -> Secret {
        let object: JSONObject = [
            "version": version, "ended": true, "word": word, "message": message, "moved": hasMoved ? true : nil,
        ]
        return Secret(bytes: JSON.object(object).serialized())
    }

    static func isOfEnd(_ text: Secret) -> Bool {
        (try? JSON(parsing: text.revealedBytes()))?.object?["ended"]?.bool == true
    }

    /// The beginning of a host's record of a shared slot, whatever its version.
    private static let sharedPrefix = Array("ringback: row ".utf8)

    static func decode(_ text: Secret, by clock: BrokerClock, shift: Duration? = nil) throws(Failure) -> Session {
        if text.revealedBytes().starts(with: sharedPrefix) { throw .shared }
        guard let object = try? JSON(parsing: text.revealedBytes()).object, let found = object["version"]?.integer
        else { throw .damaged }
        guard found <= version else { throw .newer }
        if object["ended"]?.bool == true {
            throw .ended(
                object["word"]?.string, message: object["message"]?.string, hasMoved: object["moved"]?.bool == true)
        }
        guard let issuer = object["issuer"]?.string, let origin = object["token_endpoint_origin"]?.string,
            let signedInAt = object["signed_in_at"]?.integer
        else { throw .damaged }
        let reader = DeadlineReader(
            clock: clock, isSameBoot: !clock.bootID.isEmpty && object["boot_id"]?.string == clock.bootID, shift: shift)
        var tokens: [TokenKey: AccessToken] = [:]
        for case .object(let member) in object["tokens"]?.array ?? [] {
            guard let value = member["access_token"]?.string, let type = member["token_type"]?.string else {
                throw .damaged
            }
            let key = TokenKey(
                scopes: member["for_scopes"]?.array?.compactMap(\.string), audience: member["for_audience"]?.string,
                resource: member["for_resource"]?.string)
            let lifetime = member["lifetime"]?.integer.map { Duration.seconds($0) }
            tokens[key] = AccessToken(
                value: Secret(value), type: type, scope: member["scope"]?.string,
                isScopeStated: member["scope_stated"]?.bool == true,
                expiry: reader.read(member["expiry"], lifetime: lifetime), lifetime: lifetime)
        }
        var session = Session(
            refreshToken: secret(object["refresh_token"]), scope: object["scope"]?.string, issuer: issuer,
            tokenEndpointOrigin: origin, signedInAt: WallInstant(seconds: signedInAt))
        session.unvalidated = secret(object["successor"]).map { token in
            Session.Unvalidated(token, presented: secret(object["presented"]))
        }
        session.proofKey = secret(object["proof_key"])
        session.identity = object["identity"]?.object.flatMap { decodeIdentity($0, reader) }
        session.subject = object["subject"]?.string
        session.user = object["user"]?.object
        session.end = reader.read(object["end"], lifetime: nil)
        if let rotates = object["rotates"]?.bool { session.rotation = rotates ? .rotates : .keeps }
        session.tokens = tokens
        session.attachments = attachments(in: object)
        session.lostScopes = object["lost_scopes"]?.array?.compactMap(\.string) ?? []
        session.downscopedTo = object["downscoped_to"]?.string
        // Older versions wrote no machine.
        let machine = clock.machineID.isEmpty ? nil : object["machine_id"]?.string
        session.hasMoved = object["moved"]?.bool == true || machine != nil && machine != clock.machineID
        return session
    }

    static func endsAll(_ text: Secret) -> Bool {
        (try? JSON(parsing: text.revealedBytes()))?["ends_all"]?.bool == true
    }

    private static func encode(_ attachments: [String: SessionAttachment]) -> JSONObject {
        JSONObject(
            attachments.sorted { $0.key < $1.key }.map { name, attachment in
                let secrets = attachment.secrets.sorted { $0.key < $1.key }.map { name, secret in
                    JSONObject.Member(name, .string(secret.revealed()))
                }
                return JSONObject.Member(
                    name, ["facts": .object(attachment.facts), "secrets": .object(JSONObject(secrets))])
            })
    }

    /// Older versions wrote an attachment as a member of the record itself.
    private static func attachments(in object: JSONObject) -> [String: SessionAttachment] {
        var attachments: [String: SessionAttachment] = [:]
        for member in object.members where !members.contains(member.name) {
            if let facts = member.value.object { attachments[member.name] = SessionAttachment(facts: facts) }
        }
        for member in object["attachments"]?.object?.members ?? [] {
            let secrets = (member.value["secrets"]?.object?.members ?? []).compactMap { secret in
                secret.value.string.map { (secret.name, Secret($0)) }
            }
            attachments[member.name] = SessionAttachment(
                facts: member.value["facts"]?.object ?? JSONObject(),
                secrets: Dictionary(secrets) { first, _ in first })
        }
        return attachments
    }

    private static let members: Set<String> = [
        "version", "issuer", "token_endpoint_origin", "signed_in_at", "refresh_token", "successor", "subject", "user",
        "scope", "boot_id", "rotates", "end", "identity", "tokens", "attachments", "ends_all", "ended", "word",
        "message", "presented", "downscoped_to", "lost_scopes", "machine_id", "moved", "proof_key",
    ]

    private static func decodeIdentity(_ object: JSONObject, _ reader: DeadlineReader) -> Session.Identity? {
        let lifetime = object["lifetime"]?.integer.map { Duration.seconds($0) }
        guard let token = secret(object["token"]), let expiry = reader.read(object["expiry"], lifetime: lifetime) else {
            return nil
        }
        var identity = Session.Identity(
            token: token, expiry: expiry, lifetime: lifetime,
            audience: object["audience"]?.array?.compactMap(\.string) ?? [])
        identity.authenticationTime = object["auth_time"]?.integer.map { WallInstant(seconds: $0) }
        identity.authorizedParty = object["azp"]?.string
        identity.nonce = secret(object["nonce"])
        identity.issuer = object["issuer"]?.string
        identity.nonceSource = secret(object["nonce_source"])
        return identity
    }
}

extension Deadline {
    var json: JSON { ["at": .integer(at.seconds), "boot": .integer(boot.milliseconds)] }
}

/// Reads instants that an earlier run or another host wrote. In the same boot the time since boot still holds; after
/// another boot the wall clock's is used if no shift is known. Neither a clock that was set back nor a changed file
/// extends a lifetime: what is left is at most the whole, counted from now.
struct DeadlineReader {
    let clock: BrokerClock
    let isSameBoot: Bool
    var shift: Duration?

    func read(_ json: JSON?, lifetime: Duration?) -> Deadline? {
        guard let at = json?["at"]?.integer.map({ WallInstant(seconds: $0) }), let boot = json?["boot"]?.integer else {
            return nil
        }
        let stated =
            if isSameBoot {
                Deadline(at: at, boot: BootInstant(milliseconds: boot))
            } else if let shift {
                Deadline(in: BootInstant(milliseconds: boot) + shift - clock.bootInstant, by: clock)
            } else {
                Deadline(at: at, by: clock)
            }
        guard let lifetime else { return stated }
        let longest = Deadline(in: lifetime, by: clock)
        return stated.boot > longest.boot ? longest : stated
    }
}
