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

        var bearer: Secret? { secret("bearer") }
        var captcha: Secret? { secret("captcha") }
        var id: String { text("id") ?? "" }
        var link: MailLink { MailLink(redirectTo: text("redirect_to"), challenge: text("challenge")) }
        var channel: MessageChannel? { text("channel").flatMap(MessageChannel.init(rawValue:)) }
        var purpose: MessagePurpose { text("type").flatMap(MessagePurpose.init(rawValue:)) ?? .email }
        var browser: BrowserSignIn {
            BrowserSignIn(
                provider: text("provider") ?? "", scopes: object["scopes"]?.array?.compactMap(\.string) ?? [],
                redirectTo: text("redirect_to") ?? "", challenge: text("challenge") ?? "",
                params: member("params")?.members.map { ($0.name, $0.value.string ?? "") } ?? [])
        }
    }

    /// Two tables, because the type checker is slow on one.
    static let table = people.merging(account) { first, _ in first }

    private static let people: [String: Call] = [
        "passkey_sign_in": { try $0.http(.passkeySignIn(captcha: $1.captcha)) },
        "passkey_grant": {
            try $0.http(.passkey(challenge: $1.text("challenge_id") ?? "", credential: $1.credential()))
        },
        "authorize": { try $0.http(.authorization($1.browser)) },
        "password_grant": { try $0.http(.password($1.contact(), $1.need("password"), captcha: $1.captcha)) },
        "code_grant": { try $0.http(.code($1.need("code"), verifier: $1.need("verifier"))) },
        "refresh_grant": { try $0.http(.refresh($1.need("refresh_token"))) },
        "id_token_grant": {
            let request = try SupabaseRequest.idToken(
                $1.need("id_token"), of: $1.text("provider") ?? "", accessToken: $1.secret("access_token"),
                nonce: $1.secret("nonce"), captcha: $1.captcha, isLink: $1.bearer != nil)
            return try $0.http(request, bearer: $1.bearer)
        },
        "sso": {
            let organization = $1.text("domain").map { Organization.domain($0) }
            let request = try SupabaseRequest.singleSignOn(
                organization ?? .providerID($1.text("provider_id") ?? ""), redirectTo: $1.text("redirect_to") ?? "",
                challenge: $1.text("challenge") ?? "", captcha: $1.captcha)
            return try $0.http(request)
        },
        "sign_up": {
            let user = NewUser(
                contact: try $1.contact(), password: $1.need("password"), data: $1.member("data"), channel: $1.channel)
            return try $0.http(.signUp(user, link: $1.link, captcha: $1.captcha))
        },
        "sign_up_anonymously": { try $0.http(.signUpAnonymously(data: $1.member("data"), captcha: $1.captcha)) },
        "send_code": {
            let request = try SupabaseRequest.sendCode(
                to: try $1.contact(), createsUser: $1.object["create_user"]?.bool ?? true, data: $1.member("data"),
                channel: $1.channel, link: $1.link, captcha: $1.captcha)
            return try $0.http(request)
        },
        "recover": { try $0.http(.sendRecovery(to: $1.email(), link: $1.link, captcha: $1.captcha)) },
        "resend": {
            let kind = $1.text("type").flatMap(Resending.init(rawValue:)) ?? .signUp
            return try $0.http(.resend(kind, to: $1.contact(), link: $1.link, captcha: $1.captcha))
        },
        "verify_code": { try $0.http(.verify($1.code(), for: $1.purpose, of: $1.contact())) },
        "verify_hash": { try $0.http(.verify(tokenHash: $1.need("token_hash"), for: $1.purpose)) },
        "keys": { project, _ in try project.http(.keys) },
        "settings": { project, _ in try project.http(.settings) },
    ]

    private static let account: [String: Call] = [
        "passkey_registration": { try $0.http(.passkeyRegistration, bearer: $1.bearer) },
        "register_passkey": {
            let request = try SupabaseRequest.registerPasskey(
                challenge: $1.text("challenge_id") ?? "", credential: $1.credential())
            return try $0.http(request, bearer: $1.bearer)
        },
        "passkeys": { try $0.http(.passkeys, bearer: $1.bearer) },
        "rename_passkey": { try $0.http(.renamePasskey($1.id, to: $1.text("name") ?? ""), bearer: $1.bearer) },
        "remove_passkey": { try $0.http(.removePasskey($1.id), bearer: $1.bearer) },
        "user": { try $0.http(.user, bearer: $1.bearer) },
        "update_user": {
            var changes = UserChanges()
            changes.email = try $1.text("email").map(EmailAddress.init(parsing:))
            changes.phone = try $1.text("phone").map(PhoneNumber.init(parsing:))
            changes.password = $1.secret("password")
            changes.currentPassword = $1.secret("current_password")
            changes.nonce = $1.secret("nonce")
            changes.data = $1.member("data")
            changes.channel = $1.channel
            return try $0.http(.update(changes, link: $1.link), bearer: $1.bearer)
        },
        "reauthenticate": { try $0.http(.reauthentication, bearer: $1.bearer) },
        "sign_out": {
            let scope = $1.text("scope").flatMap(SignOutScope.init(rawValue:)) ?? .local
            return try $0.http(.signOut(scope), bearer: $1.bearer)
        },
        "link_identity": { try $0.http(.identityLink($1.browser), bearer: $1.bearer) },
        "consents": { try $0.http(.consents, bearer: $1.bearer) },
        "revoke_consent": { try $0.http(.revokeConsent(client: $1.id), bearer: $1.bearer) },
        "remove_identity": { try $0.http(.removeIdentity($1.id), bearer: $1.bearer) },
        "enroll_factor": {
            let kind: NewFactor.Kind =
                switch $1.text("type") {
                case "totp": .totp(issuer: $1.text("issuer"))
                case "phone": .phone(try PhoneNumber(parsing: $1.text("phone") ?? ""))
                default: .webAuthn
                }
            return try $0.http(.enroll(NewFactor(kind, name: $1.text("name"))), bearer: $1.bearer)
        },
        "challenge_factor": {
            try $0.http(.challenge(factor: $1.id, channel: $1.channel, party: $1.party()), bearer: $1.bearer)
        },
        "verify_factor": {
            let proof: FactorProof =
                $1.object["credential"] == nil ? .code(try $1.code()) : .webAuthn(try $1.credential(), try $1.party())
            let request = try SupabaseRequest.verify(
                factor: $1.id, challenge: $1.text("challenge_id") ?? "", proof: proof)
            return try $0.http(request, bearer: $1.bearer)
        },
        "remove_factor": { try $0.http(.removeFactor($1.id), bearer: $1.bearer) },
        "row": {
            let request = try SupabaseRequest.row(
                in: $1.text("table") ?? "", where: $1.text("key") ?? "", is: $1.text("value") ?? "")
            return try $0.http(request, bearer: $1.bearer)
        },
        "rpc": {
            let request = try SupabaseRequest.call(
                $1.text("function") ?? "", arguments: $1.member("arguments") ?? JSONObject())
            return try $0.http(request, bearer: $1.bearer)
        },
        "invoke": {
            let request = try SupabaseRequest.invoke(
                $1.text("function") ?? "", arguments: $1.member("arguments") ?? JSONObject())
            return try $0.http(request, bearer: $1.bearer)
        },
    ]
}
