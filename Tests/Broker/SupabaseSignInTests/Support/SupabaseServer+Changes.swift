import RingbackBase

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

extension SupabaseServer {
    /// The address and the nonce's claim: of this world's own short form, or of a token as providers give them.
    static func parts(ofIDToken text: String) -> [String] {
        guard !text.contains(";") else {
            return text.split(separator: ";", omittingEmptySubsequences: false).map(String.init)
        }
        let payload = text.split(separator: ".").dropFirst().first.flatMap { Base64URL.decode(String($0)) }
        guard let claims = payload.flatMap({ try? JSON(parsing: $0) }) else { return [] }
        return [claims["email"]?.string ?? "", claims["nonce"]?.string ?? ""]
    }
}

/// A changed address or number: pending until its codes were redeemed, by both addresses where the project wants that.
extension SupabaseServer {
    mutating func changeContacts(_ request: SupabaseRequest, _ user: User, at now: Int) -> ProjectReply? {
        if let email = request.body["email"]?.string, email != user.email {
            guard self.user(email: email) == nil else { return .no(422, "email_exists") }
            users[user.id]?.newEmail = email
            sendChange(of: user.id, request, at: now)
        }
        if let phone = request.body["phone"]?.string, phone != user.phone {
            guard self.user(phone: phone) == nil else { return .no(422, "phone_exists") }
            users[user.id]?.newPhone = phone
            mails[phone] = Mail(code: String(100_000 + number()), sentAt: now, change: user.id, kind: "phone_change")
        }
        return nil
    }

    private mutating func sendChange(of id: String, _ request: SupabaseRequest, at now: Int) {
        guard let user = users[id], let new = user.newEmail else { return }
        users[id]?.hasConfirmedOne = false
        let link = request.query["redirect_to"].map {
            Return(
                redirectTo: $0, challenge: request.body["code_challenge"]?.string ?? "", method: "email_change",
                startedAt: now)
        }
        let both = securesEmailChange && !user.email.isEmpty
        for address in both ? [user.email, new] : [new] {
            mails[address] = Mail(
                code: String(100_000 + number()), link: link, sentAt: now, change: id, kind: "email_change")
        }
    }

    /// `/resend` of a change: it knows people by their present address, and says nothing of those that it does not know.
    mutating func resendChange(_ request: SupabaseRequest, at now: Int) -> ProjectReply {
        let kind = request.body["type"]?.string
        if kind == "email_change", let user = user(email: request.body["email"]?.string ?? "") {
            sendChange(of: user.id, request, at: now)
        }
        if kind == "phone_change", let user = user(phone: request.body["phone"]?.string ?? ""),
            let phone = user.newPhone
        {
            mails[phone] = Mail(code: String(100_000 + number()), sentAt: now, change: user.id, kind: "phone_change")
        }
        return ProjectReply()
    }

    /// True if the change is through; false if the other address is to agree, too.
    mutating func takeConfirmation(_ mail: Mail) -> Bool? {
        guard let id = mail.change, let user = users[id] else { return nil }
        if mail.kind == "phone_change" {
            users[id]?.phone = user.newPhone ?? user.phone
            users[id]?.newPhone = nil
            return true
        }
        if securesEmailChange, !user.email.isEmpty, !user.hasConfirmedOne {
            users[id]?.hasConfirmedOne = true
            return false
        }
        users[id]?.email = user.newEmail ?? user.email
        users[id]?.newEmail = nil
        users[id]?.isAnonymous = false
        return true
    }

    /// A change's code, typed; nil if no change has to do with it.
    mutating func verifyChange(_ body: JSON, at now: Int) -> ProjectReply? {
        let contact = body["email"]?.string ?? body["phone"]?.string ?? ""
        let hash = body["token_hash"]?.string
        let found = hash.flatMap { hash in mails.first { "hash-\($0.value.code)" == hash }?.key } ?? contact
        guard body["type"]?.string?.hasSuffix("_change") == true else { return nil }
        guard let mail = mails[found], hash != nil || mail.code == body["token"]?.string,
            mail.kind == body["type"]?.string, let id = mail.change
        else { return .no(403, "otp_expired", "Token has expired or is invalid") }
        mails[found] = nil
        switch takeConfirmation(mail) {
        case true?: return open(id, "otp", at: now)
        case false?: return ProjectReply(body: ["code": "200", "msg": "Confirmation link accepted."])
        case nil: return .no(403, "otp_expired")
        }
    }

    /// Where a change's link leads: to a message first, to a code then.
    mutating func followChange(_ address: String) -> String? {
        guard let mail = mails[address], let link = mail.link, let id = mail.change else { return nil }
        mails[address] = nil
        guard takeConfirmation(mail) == true else {
            return link.redirectTo + "?message=Confirmation+link+accepted#message=Confirmation+link+accepted&sb="
        }
        return callback(link, id)
    }
}
