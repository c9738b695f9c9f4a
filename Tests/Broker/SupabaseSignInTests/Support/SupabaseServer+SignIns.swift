import Cryptography
import RingbackBase

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

extension SupabaseServer {
    mutating func page(
        _ request: SupabaseRequest, _ linking: String?, at now: Int
    ) -> ProjectReply {
        let provider = request.query["provider"] ?? ""
        guard providers.contains(provider) else {
            return .no(400, "validation_failed", "Unsupported provider: provider is not enabled")
        }
        let reply = pageURL(
            request.query["redirect_to"], request.query["code_challenge"], provider, linking, at: now)
        return linking == nil ? ProjectReply(status: 302, location: reply.body["url"]?.string) : reply
    }

    mutating func pageURL(
        _ redirectTo: String?, _ challenge: String?, _ method: String, _ linking: String?, at now: Int
    ) -> ProjectReply {
        let state = uuid()
        returns[state] = Return(
            redirectTo: redirectTo ?? "", challenge: challenge ?? "", method: method, startedAt: now, linking: linking)
        return ProjectReply(body: ["url": .string("https://provider.example/page?state=\(state)")])
    }

    mutating func exchange(_ body: JSON, at now: Int) -> ProjectReply {
        let text = body["auth_code"]?.string ?? ""
        guard let code = codes[text] else { return .no(404, "flow_state_not_found") }
        guard now - code.flow.startedAt <= 300 else { return .no(422, "flow_state_expired") }
        let verifier = Array((body["code_verifier"]?.string ?? "").utf8)
        guard Base64URL.encode(Digest.sha256(verifier)) == code.flow.challenge else {
            return .no(400, "bad_code_verifier")
        }
        codes[text] = nil
        let isMail = ["recovery", "otp"].contains(code.flow.method)
        return open(
            code.user, isMail ? code.flow.method : "oauth", at: now, providerToken: isMail ? nil : "upstream-access")
    }

    mutating func password(_ body: JSON, at now: Int) -> ProjectReply {
        let found = user(email: body["email"]?.string ?? "") ?? user(phone: body["phone"]?.string ?? "")
        guard let found, found.password != nil, found.password == body["password"]?.string else {
            return .no(400, "invalid_credentials", "Invalid login credentials")
        }
        guard found.isConfirmed else { return .no(400, "email_not_confirmed") }
        let reply = open(found.id, "password", at: now)
        return ProjectReply(body: reply.body.setting("weak_password", .null))
    }

    /// A credential of this world is named by the person's address.
    mutating func passkey(_ body: JSON, at now: Int) -> ProjectReply {
        guard challenges.removeValue(forKey: body["challenge_id"]?.string ?? "") == "passkey" else {
            return .no(400, "webauthn_challenge_not_found")
        }
        guard let user = user(email: body["credential"]?["id"]?.string ?? "") else {
            return .no(400, "webauthn_verification_failed")
        }
        return open(user.id, "passkey", at: now)
    }

    /// An ID token of this world is `EMAIL;SHA-256-OF-NONCE`.
    mutating func idToken(_ body: JSON, _ linking: String?, at now: Int) -> ProjectReply {
        let parts = SupabaseServer.parts(ofIDToken: body["id_token"]?.string ?? "")
        guard parts.count == 2 else { return ProjectReply(status: 400, body: ["error": "invalid request"]) }
        let nonce = body["nonce"]?.string.map { Digest.hex(Digest.sha256($0)) } ?? ""
        guard nonce == parts[1] else {
            return ProjectReply(
                status: 400, body: ["error": "invalid nonce", "error_description": "Nonces mismatch"])
        }
        let email = parts[0]
        let provider = body["provider"]?.string ?? ""
        if let linking {
            let identity = Identity(id: uuid(), provider: provider)
            users[linking]?.identities.append(identity)
            return open(linking, "oauth", at: now)
        }
        return open((user(email: email) ?? addUser(email: email, provider: provider)).id, "oauth", at: now)
    }

    mutating func signUp(_ request: SupabaseRequest, at now: Int) -> ProjectReply {
        let (email, phone) = (request.body["email"]?.string ?? "", request.body["phone"]?.string ?? "")
        guard !email.isEmpty || !phone.isEmpty else { return open(addUser().id, "anonymous", at: now) }
        let word = request.body["password"]?.string ?? ""
        guard word.utf8.count >= 8 else {
            return .no(422, "weak_password", "Password should be longer.", ["reasons": ["length"]])
        }
        if let known = user(email: email) ?? user(phone: phone), known.isConfirmed {
            if confirmsItself { return .no(422, "user_already_exists") }
            var stranger = User(id: uuid(), email: email)
            stranger.isConfirmed = false
            return ProjectReply(body: json(stranger).setting("role", ""))
        }
        let user = addUser(email: email, phone: phone, password: word, isConfirmed: confirmsItself)
        if confirmsItself { return open(user.id, "password", at: now) }
        send(to: email.isEmpty ? phone : email, request, "otp", at: now)
        return ProjectReply(body: json(user))
    }

    mutating func mail(_ request: SupabaseRequest, at now: Int) -> ProjectReply {
        let (email, phone) = (request.body["email"]?.string ?? "", request.body["phone"]?.string ?? "")
        let contact = email.isEmpty ? phone : email
        if let sentAt = mails[contact]?.sentAt, now - sentAt < sendInterval {
            let left = sendInterval - (now - sentAt)
            let words = "For security purposes, you can only request this after \(left) seconds."
            return .no(429, email.isEmpty ? "over_sms_send_rate_limit" : "over_email_send_rate_limit", words)
        }
        if user(email: email) ?? user(phone: phone) == nil {
            // Whether there is such a person, the mail for a forgotten password does not tell.
            guard request.path == "/otp" else { return ProjectReply() }
            guard request.body["create_user"] != false else { return .no(422, "otp_disabled") }
            addUser(email: email, phone: phone, isConfirmed: false)
        }
        send(to: contact, request, request.path == "/recover" ? "recovery" : "otp", at: now)
        return ProjectReply()
    }

    mutating func send(to contact: String, _ request: SupabaseRequest, _ method: String, at now: Int) {
        let link = request.query["redirect_to"].map {
            Return(
                redirectTo: $0, challenge: request.body["code_challenge"]?.string ?? "", method: method, startedAt: now)
        }
        mails[contact] = Mail(code: String(100_000 + number()), link: link, sentAt: now)
    }

    mutating func verify(_ body: JSON, at now: Int) -> ProjectReply {
        let contact = body["email"]?.string ?? body["phone"]?.string ?? ""
        let hash = body["token_hash"]?.string
        let found = hash.flatMap { hash in mails.first { "hash-\($0.value.code)" == hash }?.key } ?? contact
        guard let mail = mails[found], hash != nil || mail.code == body["token"]?.string,
            let user = user(email: found) ?? user(phone: found)
        else { return .no(403, "otp_expired", "Token has expired or is invalid") }
        mails[found] = nil
        users[user.id]?.isConfirmed = true
        return open(user.id, body["type"] == "recovery" ? "recovery" : "otp", at: now)
    }
}
