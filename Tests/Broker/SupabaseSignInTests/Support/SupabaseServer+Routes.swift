import Cryptography
import RingbackBase

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

extension SupabaseServer {
    mutating func answer(_ request: SupabaseRequest, at now: Int) -> ProjectReply {
        if let bearer = request.bearer ?? (needsBearer(request) ? "" : nil) {
            guard let (session, user) = holder(of: bearer, at: now) else { return refusal(of: bearer, at: now) }
            return answer(request, session, user, at: now)
        }
        switch request.kind {
        case "GET /.well-known/jwks.json":
            let keys = signature == .es256 ? published ?? [mint.jwk] : []
            return ProjectReply(body: ["keys": .array(keys)])
        case "GET /authorize": return page(request, nil, at: now)
        case "POST /sso":
            guard request.body["skip_http_redirect"] == true else { return ProjectReply(status: 303) }
            return pageURL(
                request.body["redirect_to"]?.string, request.body["code_challenge"]?.string, "sso/saml", nil, at: now)
        case FakeSupabase.refresh: return refresh(request.body["refresh_token"]?.string ?? "", at: now)
        case FakeSupabase.exchange: return exchange(request.body, at: now)
        case "POST /token password": return password(request.body, at: now)
        case "POST /token id_token": return idToken(request.body, nil, at: now)
        case "POST /passkeys/authentication/options":
            let id = uuid()
            challenges[id] = "passkey"
            return ProjectReply(body: [
                "challenge_id": .string(id), "options": ["challenge": "YQ"], "expires_at": .integer(now + 300),
            ])
        case "POST /passkeys/authentication/verify": return passkey(request.body, at: now)
        case "POST /signup": return signUp(request, at: now)
        case "POST /resend" where request.body["type"]?.string?.hasSuffix("_change") == true:
            return resendChange(request, at: now)
        case "POST /otp", "POST /recover", "POST /resend": return mail(request, at: now)
        case "POST /verify": return verifyChange(request.body, at: now) ?? verify(request.body, at: now)
        default: return ProjectReply(status: 404, body: .null)
        }
    }

    private func needsBearer(_ request: SupabaseRequest) -> Bool {
        let places = ["/user", "/factors", "/logout", "/reauthenticate", "/rest", "/functions"]
        return places.contains { request.path.hasPrefix($0) }
    }

    private func holder(of bearer: String, at now: Int) -> (String, User)? {
        guard let known = access[bearer], known.expiresAt > now, let session = sessions[known.session],
            let user = users[session.user]
        else { return nil }
        return (known.session, user)
    }

    private func refusal(of bearer: String, at now: Int) -> ProjectReply {
        guard !bearer.isEmpty else { return .no(401, "no_authorization") }
        guard let known = access[bearer], known.expiresAt > now else { return .no(403, "bad_jwt", "token is expired") }
        return .no(403, "session_not_found")
    }

    private mutating func answer(
        _ request: SupabaseRequest, _ session: String, _ user: User, at now: Int
    ) -> ProjectReply {
        switch request.kind {
        case "GET /user": return ProjectReply(body: json(user))
        case "PUT /user": return changeContacts(request, user, at: now) ?? update(request.body, session, user)
        case "GET /reauthenticate": return ProjectReply()
        case "POST /logout local", "POST /logout global", "POST /logout others":
            for (id, other) in sessions where other.user == user.id {
                if (id == session) != (request.query["scope"] == "others") || request.query["scope"] == "global" {
                    sessions[id] = nil
                }
            }
            return ProjectReply(status: 204)
        case "POST /token id_token": return idToken(request.body, user.id, at: now)
        case "GET /user/identities/authorize": return page(request, user.id, at: now)
        case "DELETE /user/identities":
            guard user.identities.count > 1 else { return .no(422, "single_identity_not_deletable") }
            users[user.id]?.identities.removeAll { request.path.hasSuffix($0.id) }
            return ProjectReply()
        case "POST /factors": return enroll(request.body, session, user)
        case "POST /factors/challenge", "POST /factors/verify", "DELETE /factors":
            return factor(request, session, user, at: now)
        case let kind where kind.hasPrefix("POST /rest/v1/rpc/") || kind.hasPrefix("POST /functions/v1/"):
            return ProjectReply(body: ["called": request.body, "by": .string(user.id)])
        default: return ProjectReply(status: 404, body: .null)
        }
    }

    private mutating func update(_ body: JSON, _ session: String, _ user: User) -> ProjectReply {
        let hasFactor = user.factors.contains { $0.isVerified }
        if body["password"] != nil || body["email"] != nil, hasFactor, sessions[session]?.assurance != "aal2" {
            return .no(401, "insufficient_aal")
        }
        if let word = body["password"]?.string {
            guard word.utf8.count >= 8 else { return .no(422, "weak_password", "No.", ["reasons": ["length"]]) }
            guard word != user.password else { return .no(422, "same_password") }
            users[user.id]?.password = word
            for (id, other) in sessions where other.user == user.id && id != session { sessions[id] = nil }
        }
        for member in body["data"]?.object?.members ?? [] {
            // Null removes.
            users[user.id]?.data[member.name] = member.value == .null ? Optional<JSON>.none : member.value
        }
        return ProjectReply(body: json(users[user.id] ?? user))
    }

    private mutating func enroll(_ body: JSON, _ session: String, _ user: User) -> ProjectReply {
        guard !user.isAnonymous else { return .no(403, "no_authorization") }
        if user.factors.contains(where: { $0.isVerified }), sessions[session]?.assurance != "aal2" {
            return .no(403, "insufficient_aal")
        }
        let name = body["friendly_name"]?.string ?? ""
        guard !user.factors.contains(where: { $0.name == name }) else { return .no(422, "mfa_factor_name_conflict") }
        let kind = body["factor_type"]?.string ?? ""
        let factor = Factor(id: uuid(), kind: kind, name: name)
        users[user.id]?.factors.append(factor)
        var answer: JSON = ["id": .string(factor.id), "type": .string(kind), "friendly_name": .string(name)]
        if kind == "totp" {
            answer = answer.setting(
                "totp", ["uri": "otpauth://totp/x?secret=ABC", "secret": "ABC", "qr_code": "<svg/>"])
        }
        return ProjectReply(body: answer)
    }

    private mutating func factor(
        _ request: SupabaseRequest, _ session: String, _ user: User, at now: Int
    ) -> ProjectReply {
        let parts = request.path.split(separator: "/").map(String.init)
        guard parts.count > 1, let index = user.factors.firstIndex(where: { $0.id == parts[1] }) else {
            return .no(404, "mfa_factor_not_found")
        }
        switch request.kind {
        case "POST /factors/challenge":
            let id = uuid()
            challenges[id] = parts[1]
            let factor = user.factors[index]
            var answer: JSON = ["id": .string(id), "type": .string(factor.kind), "expires_at": .integer(now + 300)]
            if factor.kind == "webauthn" {
                let type: JSON = factor.isVerified ? "request" : "create"
                answer = answer.setting(
                    "webauthn", ["type": type, "credential_options": ["publicKey": ["challenge": "YQ"]]])
            }
            return ProjectReply(body: answer)
        case "DELETE /factors":
            guard !user.factors[index].isVerified || sessions[session]?.assurance == "aal2" else {
                return .no(422, "insufficient_aal")
            }
            users[user.id]?.factors.remove(at: index)
            sessions[session]?.assurance = "aal1"
            return ProjectReply(body: ["id": .string(parts[1])])
        default:
            let challenge = request.body["challenge_id"]?.string ?? ""
            guard challenges[challenge] == parts[1] else { return .no(422, "mfa_factor_not_found") }
            let isKey = user.factors[index].kind == "webauthn"
            if isKey {
                let wanted: JSON = user.factors[index].isVerified ? "request" : "create"
                guard request.body["webauthn"]?["type"] == wanted else { return .no(500, "unexpected_failure", "No.") }
            } else {
                guard request.body["code"] == "123456" else { return .no(422, "mfa_verification_failed") }
            }
            challenges[challenge] = nil
            users[user.id]?.factors[index].isVerified = true
            for (id, other) in sessions where other.user == user.id && id != session && other.assurance == "aal1" {
                sessions[id] = nil
            }
            return rise(session, by: isKey ? "mfa/webauthn" : "totp", at: now)
        }
    }

    func json(_ user: User) -> JSON {
        let identities = user.identities.map { identity -> JSON in
            [
                "identity_id": .string(identity.id), "id": .string(user.id), "provider": .string(identity.provider),
                "created_at": .string(identity.createdAt),
            ]
        }
        let factors = user.factors.map { factor -> JSON in
            [
                "id": .string(factor.id), "factor_type": .string(factor.kind), "friendly_name": .string(factor.name),
                "status": factor.isVerified ? "verified" : "unverified",
            ]
        }
        let json: JSON = [
            "id": .string(user.id), "aud": "authenticated", "role": "authenticated", "email": .string(user.email),
            "phone": .string(user.phone), "user_metadata": .object(user.data), "app_metadata": [:],
            "identities": .array(identities), "factors": .array(factors),
            "is_anonymous": .bool(user.isAnonymous), "created_at": "2026-03-02T08:14:55Z",
        ]
        return json.setting("last_sign_in_at", user.lastSignInAt.map { .string($0) })
            .setting("new_email", user.newEmail.map { .string($0) })
            .setting("new_phone", user.newPhone.map { .string($0) })
    }
}
