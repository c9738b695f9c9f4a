import RingbackBase

@testable import SupabaseAuth

/// The calls of the request vectors by name, with their arguments as the vectors write them.
enum RequestCalls {
    typealias Call = @Sendable (SupabaseProject, Arguments) throws -> HTTPRequest

    struct Arguments {
        let object: JSONObject

        func text(_ name: String) -> String? { object[name]?.string }
        func secret(_ name: String) -> Secret? { text(name).map { Secret($0) } }
        func need(_ name: String) -> Secret { secret(name) ?? Secret("") }
        func member(_ name: String) -> JSONObject? { object[name]?.object }
        func contact() throws -> Contact { try Contact(email: text("email"), phone: text("phone")) }
        func email() throws -> EmailAddress { try EmailAddress(parsing: text("email") ?? "") }
        func credential() throws -> PasskeyCredential {
            try PasskeyCredential(parsing: member("credential") ?? JSONObject())
        }
        func party() throws -> RelyingParty? {
            guard let id = text("rp_id") else { return nil }
            return try RelyingParty(id: id, origins: object["rp_origins"]?.array?.compactMap(\.string) ?? [])
        }
        func code() throws -> OneTimeCode { try OneTimeCode(parsing: need("code")) }

        var bearer: Secret { need("bearer") }
        var captcha: Secret? { secret("captcha") }
        var id: String { text("id") ?? "" }
        var link: MailLink { MailLink(redirectTo: text("redirect_to"), challenge: text("challenge")) }
        var channel: MessageChannel? { text("channel").flatMap(MessageChannel.init(rawValue:)) }
        var purpose: SupabaseProject.Purpose {
            text("type").flatMap(SupabaseProject.Purpose.init(rawValue:)) ?? .email
        }
        var browser: BrowserSignIn {
            BrowserSignIn(
                provider: text("provider") ?? "", scopes: object["scopes"]?.array?.compactMap(\.string) ?? [],
                redirectTo: text("redirect_to") ?? "", challenge: text("challenge") ?? "",
                params: member("params")?.members.map { (name: $0.name, value: $0.value.string ?? "") } ?? [])
        }
    }

    static let table: [String: Call] = [people, account, passkeys].reduce(into: signIn) { table, part in
        table.merge(part) { first, _ in first }
    }

    private static let passkeys: [String: Call] = [
        "passkey_sign_in": { $0.passkeySignIn(captcha: $1.captcha) },
        "passkey_grant": { try $0.passkeyGrant(challenge: $1.text("challenge_id") ?? "", credential: $1.credential()) },
        "passkey_registration": { $0.passkeyRegistration(bearer: $1.bearer) },
        "register_passkey": {
            try $0.registerPasskey(
                challenge: $1.text("challenge_id") ?? "", credential: $1.credential(), bearer: $1.bearer)
        },
        "passkeys": { $0.passkeys(bearer: $1.bearer) },
        "rename_passkey": { try $0.renamePasskey($1.id, to: $1.text("name") ?? "", bearer: $1.bearer) },
        "remove_passkey": { try $0.removePasskey($1.id, bearer: $1.bearer) },
    ]

    private static let signIn: [String: Call] = [
        "authorize": { try $0.authorization($1.browser) },
        "password_grant": {
            try $0.passwordGrant(try $1.contact(), password: $1.need("password"), captcha: $1.captcha)
        },
        "code_grant": { $0.codeGrant(code: $1.need("code"), verifier: $1.need("verifier")) },
        "refresh_grant": { $0.refreshGrant(token: $1.need("refresh_token")) },
        "id_token_grant": {
            try $0.idTokenGrant(
                provider: $1.text("provider") ?? "", idToken: $1.need("id_token"),
                accessToken: $1.secret("access_token"), nonce: $1.secret("nonce"), captcha: $1.captcha,
                linkingTo: $1.secret("bearer"))
        },
        "web3_grant": {
            try $0.web3Grant(
                chain: $1.text("chain") ?? "", message: $1.text("message") ?? "", signature: $1.need("signature"))
        },
        "sso": {
            let organization = $1.text("domain").map { SupabaseProject.Organization.domain($0) }
            return try $0.singleSignOn(
                organization ?? .providerID($1.text("provider_id") ?? ""), redirectTo: $1.text("redirect_to") ?? "",
                challenge: $1.text("challenge") ?? "", captcha: $1.captcha)
        },
    ]

    private static let people: [String: Call] = [
        "sign_up": {
            let user = SupabaseProject.NewUser(
                contact: try $1.contact(), password: $1.need("password"), data: $1.member("data"), channel: $1.channel)
            return try $0.signUp(user, link: $1.link, captcha: $1.captcha)
        },
        "sign_up_anonymously": { $0.signUpAnonymously(data: $1.member("data"), captcha: $1.captcha) },
        "send_code": {
            try $0.sendCode(
                to: try $1.contact(), createsUser: $1.object["create_user"]?.bool ?? true, data: $1.member("data"),
                channel: $1.channel, link: $1.link, captcha: $1.captcha)
        },
        "magic_link": { $0.sendMagicLink(to: try $1.email(), link: $1.link, captcha: $1.captcha) },
        "recover": { $0.sendRecovery(to: try $1.email(), link: $1.link, captcha: $1.captcha) },
        "resend": {
            let kind = $1.text("type").flatMap(SupabaseProject.Resending.init(rawValue:)) ?? .signUp
            return try $0.resend(kind, to: try $1.contact(), link: $1.link, captcha: $1.captcha)
        },
        "verify_code": { try $0.verify(try $1.code(), for: $1.purpose, of: try $1.contact()) },
        "verify_hash": { try $0.verify(tokenHash: $1.need("token_hash"), for: $1.purpose) },
    ]

    private static let account: [String: Call] = [
        "user": { $0.user(bearer: $1.bearer) },
        "update_user": {
            var changes = UserChanges()
            changes.email = try $1.text("email").map(EmailAddress.init(parsing:))
            changes.phone = try $1.text("phone").map(PhoneNumber.init(parsing:))
            changes.password = $1.secret("password")
            changes.currentPassword = $1.secret("current_password")
            changes.nonce = $1.secret("nonce")
            changes.data = $1.member("data")
            changes.channel = $1.channel
            return try $0.update(changes, link: $1.link, bearer: $1.bearer)
        },
        "reauthenticate": { $0.reauthentication(bearer: $1.bearer) },
        "sign_out": { $0.signOut($1.text("scope").flatMap(SignOutScope.init(rawValue:)) ?? .local, bearer: $1.bearer) },
        "link_identity": { try $0.identityLink($1.browser, bearer: $1.bearer) },
        "consents": { $0.consents(bearer: $1.bearer) },
        "revoke_consent": { try $0.revokeConsent(client: $1.id, bearer: $1.bearer) },
        "remove_identity": { try $0.removeIdentity($1.id, bearer: $1.bearer) },
        "enroll_factor": {
            let kind: NewFactor.Kind =
                switch $1.text("type") {
                case "totp": .totp(issuer: $1.text("issuer"))
                case "phone": .phone(try PhoneNumber(parsing: $1.text("phone") ?? ""))
                default: .webAuthn
                }
            return $0.enroll(NewFactor(kind, name: $1.text("name")), bearer: $1.bearer)
        },
        "challenge_factor": {
            try $0.challenge(factor: $1.id, channel: $1.channel, party: try $1.party(), bearer: $1.bearer)
        },
        "verify_factor": {
            var proof: FactorProof
            if $1.object["credential"] != nil {
                proof = .webAuthn(try $1.credential(), try $1.party())
            } else {
                proof = .code(try $1.code())
            }
            return try $0.verify(
                factor: $1.id, challenge: $1.text("challenge_id") ?? "", proof: proof, bearer: $1.bearer)
        },
        "remove_factor": { try $0.removeFactor($1.id, bearer: $1.bearer) },
        "keys": { project, _ in project.keys() },
        "settings": { project, _ in project.settings() },
        "health": { project, _ in project.health() },
        "row": {
            try $0.row(
                in: $1.text("table") ?? "", where: $1.text("key") ?? "", is: $1.text("value") ?? "", bearer: $1.bearer)
        },
        "rpc": {
            try $0.call(
                $1.text("function") ?? "", arguments: $1.member("arguments") ?? JSONObject(), bearer: $1.bearer)
        },
    ]
}
