internal import Secrets
internal import StrictJSON

/// A session as text for the vault: the first version holds the whole lineage, so that later ones only add members.
enum SessionRecord {
    static let version = 1

    /// The session as JSON, secrets included: for the vault alone.
    static func encode(_ session: Session) -> Secret {
        var object = JSONObject([
            .init("version", .integer(version)), .init("issuer", .string(session.issuer)),
            .init("token_endpoint_origin", .string(session.tokenEndpointOrigin)),
            .init("signed_in_at", .integer(session.signedInAt)),
        ])
        object["refresh_token"] = text(session.refreshToken)
        object["successor"] = text(session.successor)
        object["subject"] = session.subject.map { .string($0) }
        object["user"] = session.user.map { .object($0) }
        object["scope"] = session.scope.map { .string($0) }
        object["identity"] = session.identity.map { identity in
            var member = JSONObject([
                .init("token", .string(identity.token.revealed())), .init("expires_at", .integer(identity.expiresAt)),
                .init("audience", .array(identity.audience.map { .string($0) })),
            ])
            member["lifetime"] = identity.lifetime.map { .integer($0) }
            member["auth_time"] = identity.authenticationTime.map { .integer($0) }
            member["azp"] = identity.authorizedParty.map { .string($0) }
            member["nonce"] = text(identity.nonce)
            return .object(member)
        }
        object["tokens"] = .array(session.tokens.map { key, token in .object(encode(key, token)) })
        return Secret(bytes: JSON.object(object).serialized())
    }

    private static func text(_ secret: Secret?) -> JSON? { secret.map { .string($0.revealed()) } }

    private static func encode(_ key: TokenKey, _ token: AccessToken) -> JSONObject {
        var object = JSONObject([
            .init("access_token", .string(token.value.revealed())), .init("token_type", .string(token.type)),
        ])
        object["for_scopes"] = key.scopes.map { .array($0.map { .string($0) }) }
        object["for_audience"] = key.audience.map { .string($0) }
        object["for_resource"] = key.resource.map { .string($0) }
        object["scope"] = token.scope.map { .string($0) }
        object["expires_at"] = token.expiresAt.map { .integer($0) }
        object["lifetime"] = token.lifetime.map { .integer($0) }
        return object
    }

    /// Reads a record of this version or an older one; nil if it is damaged or newer.
    static func decode(_ text: Secret) -> Session? {
        guard let object = try? JSON(parsing: text.revealedBytes()).object, let found = object["version"]?.integer,
            found <= version, let issuer = object["issuer"]?.string,
            let origin = object["token_endpoint_origin"]?.string, let signedInAt = object["signed_in_at"]?.integer
        else { return nil }
        var tokens: [TokenKey: AccessToken] = [:]
        for case .object(let member) in object["tokens"]?.array ?? [] {
            guard let value = member["access_token"]?.string, let type = member["token_type"]?.string else {
                return nil
            }
            let key = TokenKey(
                scopes: member["for_scopes"]?.array?.compactMap(\.string), audience: member["for_audience"]?.string,
                resource: member["for_resource"]?.string)
            tokens[key] = AccessToken(
                value: Secret(value), type: type, scope: member["scope"]?.string,
                expiresAt: member["expires_at"]?.integer, lifetime: member["lifetime"]?.integer)
        }
        return Session(
            refreshToken: object["refresh_token"]?.string.map { Secret($0) },
            successor: object["successor"]?.string.map { Secret($0) },
            identity: object["identity"]?.object.flatMap(decodeIdentity), subject: object["subject"]?.string,
            user: object["user"]?.object, scope: object["scope"]?.string, issuer: issuer, tokenEndpointOrigin: origin,
            signedInAt: signedInAt, tokens: tokens)
    }

    private static func decodeIdentity(_ object: JSONObject) -> Session.Identity? {
        guard let token = object["token"]?.string, let expiresAt = object["expires_at"]?.integer else { return nil }
        return Session.Identity(
            token: Secret(token), expiresAt: expiresAt, lifetime: object["lifetime"]?.integer,
            audience: object["audience"]?.array?.compactMap(\.string) ?? [],
            authenticationTime: object["auth_time"]?.integer, authorizedParty: object["azp"]?.string,
            nonce: object["nonce"]?.string.map { Secret($0) })
    }
}
