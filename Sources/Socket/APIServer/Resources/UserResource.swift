internal import BrokerCore
internal import LocalHTTP
internal import RingbackAPI
internal import RingbackBase
internal import SupabaseAuth
internal import SupabaseSignIn

/// What users can change about themselves, if the provider lets programs do it: at a Supabase project.
struct UserResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .getUser, "The user, as the server has it now", .json("User", .required("user", as: .anyObject)),
            errors: .ofSession
        ) { (broker, call) throws(Problem) in ["user": try await call.ask(broker.supabase.user)] },
        Route(
            .updateUser, "Change the user; an address or a number waits for its codes in a flow",
            body: .members(
                .optional("email", "phone", "nonce"), .optional("data", as: .anyObject),
                .optional("channel", as: .channel), .secret("password", "password_confirmation", "current_password")),
            .json("ChangedUser", .required("user", as: .anyObject), .optional("flow", as: .component(.flow))),
            errors: .ofFlow, UserResource.updateUser),
        Route(
            .resetPassword, "Send a mail to a user who forgot the password",
            body: .members(.optional("email", "captcha_token"), SignInResource.replace), statuses: [200, 201],
            .json(.beginning), errors: .ofFlow, UserResource.resetPassword),
        Route(
            .reauthenticate, "Send the code that a change of the password may require",
            .json("Sent", .required("account"), .required("sent", as: .boolean)), errors: .ofSession
        ) { (broker, call) throws(Problem) in
            try await call.ask(broker.supabase.reauthenticate)
            return ["account": call["account"], "sent": true]
        },
        Route(
            .callFunction, "Call a function of the project's database that the configuration lists", body: nil,
            .json(.functionResult), errors: .ofSession
        ) { (broker, call) throws(Problem) in
            let value = try await call.ask { name throws(BrokerError) in
                try await broker.supabase.call(name, function: call["function"], arguments: call.wholeBody)
            }
            return ["result": value]
        },
        Route(
            .invokeFunction, "Call an Edge Function of the project that the configuration lists", body: nil,
            .json(.functionResult), errors: .ofSession
        ) { (broker, call) throws(Problem) in
            let value = try await call.ask { name throws(BrokerError) in
                try await broker.supabase.invoke(name, function: call["function"], arguments: call.wholeBody)
            }
            return ["result": value]
        },
        Route(
            .migrate, "Store the app's former identifier of this user", body: .members(.optional("from")),
            .json(.account), errors: .ofSession
        ) { (broker, call) throws(Problem) in
            let former = try call.required("from")
            return try await call.account { name throws(BrokerError) in
                try await broker.supabase.migrate(name, from: former)
            }
        },
        Route(.acknowledgeMigration, "The app has moved the user's data", .json(.account), errors: .ofSession) {
            (broker, call) throws(Problem) in try await call.account(broker.supabase.acknowledgeMigration)
        },
    ]

    func updateUser(_ call: Call) async throws(Problem) -> ServerResponse {
        var changes = UserChanges()
        do throws(FieldError) {
            changes.email = try call.field("email").map { text throws(FieldError) in try EmailAddress(parsing: text) }
            changes.phone = try call.field("phone").map { text throws(FieldError) in try PhoneNumber(parsing: text) }
            changes.channel = try call.field("channel").map { text throws(FieldError) in
                try MessageChannel(parsing: text)
            }
        } catch {
            throw Problem(
                BrokerError.invalid(field: error.field, reason: .stated(error.reason)), language: call.language)
        }
        changes.password = try call.newPassword()
        changes.currentPassword = try call.secret("current_password")
        changes.nonce = try call.secret("nonce")
        changes.data = try call.object("data")
        guard !changes.isEmpty else {
            throw Problem(.validationFailed, "The request changes nothing: send email, phone, password or data.")
        }
        let changed = try await call.ask { name throws(BrokerError) in try await broker.supabase.update(name, changes) }
        // The change is complete when the codes of its messages have been redeemed at this flow.
        return ServerResponse(["user": changed.user, "flow": changed.flow?.json(in: call.language)])
    }

    func resetPassword(_ call: Call) async throws(Problem) -> ServerResponse {
        let email = try call.required("email")
        let captcha = try call.secret("captcha_token")
        let replaces = try call.truth("replace")
        return try await beginning(call) { name throws(BrokerError) in
            try await broker.supabase.resetPassword(name, email: email, captcha: captcha, replaces: replaces)
        }
    }
}

extension Component {
    fileprivate static let functionResult = Component("FunctionResult", .required("result", as: .anything))
}

/// The identities of a user at a Supabase project, and the OAuth clients that the user has allowed there.
struct IdentityResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(.listIdentities, "The user's identities", .json(.identities), errors: .ofSession) {
            (broker, call) throws(Problem) in
            ["identities": try await call.ask(broker.supabase.user)["identities"] ?? []]
        },
        Route(
            .linkIdentity, "Link an identity, in the browser or by an ID token",
            body: .members(
                .optional("oauth_provider", "id_token", "nonce", "access_token", "scopes"),
                .optional("params", as: .map(.string)), .optional("timeout", as: .range(1...3_600)),
                SignInResource.replace), statuses: [200, 201], .json(.beginning), errors: .ofFlow,
            IdentityResource.linkIdentity),
        Route(.unlinkIdentity, "Unlink an identity", .json(.identities), errors: .ofSession) {
            (broker, call) throws(Problem) in
            let user = try await call.ask { name throws(BrokerError) in
                try await broker.supabase.unlink(name, identity: call["id"])
            }
            return ["identities": user["identities"] ?? []]
        },
        Route(
            .listConsents, "The OAuth clients of the project that the user has allowed",
            .json("Consents", .required("consents", as: .array(.component(.consent)))), errors: .ofSession
        ) { (broker, call) throws(Problem) in ["consents": try await call.ask(broker.supabase.consents).map(\.json)] },
        Route(
            .revokeConsent, "Revoke the consent for a client: the project ends its sessions of this user",
            .json("RevokedConsent", .required("account", "revoked")), errors: .ofSession
        ) { (broker, call) throws(Problem) in
            try await call.ask { name throws(BrokerError) in
                try await broker.supabase.revokeConsent(name, client: call["id"])
            }
            return ["account": call["account"], "revoked": call["id"]]
        },
    ]

    func linkIdentity(_ call: Call) async throws(Problem) -> ServerResponse {
        try call.refuseStrangers(to: SupabaseMethod.link.method, taking: SupabaseMethod.link.fields)
        var request = SignInRequest(.link)
        request.parameters = try call.authorizationParameters()
        request.timeout = try call.number("timeout", in: 1...3_600).map { .seconds($0) }
        request.scopes = try call.scopes()
        request.replaces = try call.truth("replace")
        request.project = try call.projectSignIn()
        return try await beginning(call) { name throws(BrokerError) in try await broker.begin(name, request) }
    }
}

extension Component {
    fileprivate static let identities = Component("Identities", .required("identities", as: .array(.anyObject)))
    fileprivate static let consent = Component(
        "Consent", .required("client_id"), .optional("client_name", "client_uri", "granted_at"),
        .required("scopes", as: .array(.string)))
}

struct FactorResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .listFactors, "The user's second factors",
            .json("Factors", .required("factors", as: .array(.anyObject))), errors: .ofSession
        ) { (broker, call) throws(Problem) in
            ["factors": try await call.ask(broker.supabase.user)["factors"] ?? []]
        },
        Route(
            .enrollFactor, "Add a second factor, which is active once it is verified",
            body: .members(
                .optional("factor_type", as: .words(["totp", "phone", "webauthn"])),
                .optional("friendly_name", "issuer", "phone")), statuses: [201],
            .json(
                "Enrolment", .required("id", "factor_type", "status"), .optional("friendly_name", "phone"),
                .optional("totp", as: .anyObject)), errors: .ofSession, FactorResource.enrollFactor),
        Route(
            .challengeFactor, "Request a challenge: a phone gets a message, an authenticator gets options",
            body: .members(.optional("channel", as: .channel), Component.party),
            .json(
                "Challenge", .required("id", "factor"), .optional("expires_at", as: .integer),
                .optional("webauthn", as: .component(.webAuthn))), errors: .ofSession, FactorResource.challengeFactor),
        Route(
            .verifyFactor, "Verify a factor; without challenge_id, a challenge is requested first",
            body: .members(
                .optional("code", "challenge_id"),
                .optional("credential", as: .anyObject, text: Schema.credentialText), Component.party), .json(.account),
            errors: .ofSession, FactorResource.verifyFactor),
        Route(.removeFactor, "Remove a second factor", .json(.account), errors: .ofSession) {
            (broker, call) throws(Problem) in
            try await call.account { name throws(BrokerError) in
                try await broker.supabase.removeFactor(name, factor: call["id"])
            }
        },
    ]

    func enrollFactor(_ call: Call) async throws(Problem) -> ServerResponse {
        let kind: NewFactor.Kind
        switch FactorKind(rawValue: try call.text("factor_type") ?? FactorKind.totp.rawValue) {
        case .totp?: kind = .totp(issuer: try call.text("issuer"))
        case .phone?:
            let phone = try call.required("phone")
            do throws(FieldError) { kind = .phone(try PhoneNumber(parsing: phone)) } catch {
                throw call.invalid("phone", error.reason)
            }
        case .webAuthn?: kind = .webAuthn
        case nil: throw call.invalid("factor_type", "must be totp, phone or webauthn")
        }
        let factor = NewFactor(kind, name: try call.text("friendly_name"))
        let enrolment = try await call.ask { name throws(BrokerError) in
            try await broker.supabase.enroll(name, factor)
        }
        let totp: JSONObject? = enrolment.totp.map { totp in
            ["uri": totp.uri.revealed(), "secret": totp.secret.revealed(), "qr_code": totp.picture?.revealed()]
        }
        return ServerResponse(
            status: 201,
            [
                "id": enrolment.id, "factor_type": enrolment.kind, "status": "unverified",
                "friendly_name": enrolment.name, "phone": enrolment.phone, "totp": totp,
            ])
    }

    func challengeFactor(_ call: Call) async throws(Problem) -> ServerResponse {
        let id = call["id"]
        let word = try call.text("channel")
        let channel = word.flatMap { MessageChannel(rawValue: $0) }
        guard word == nil || channel != nil else { throw call.invalid("channel", "must be sms or whatsapp") }
        let party = try call.party()
        let challenge = try await call.ask { name throws(BrokerError) in
            try await broker.supabase.challenge(name, factor: id, channel: channel, party: party)
        }
        let webAuthn: JSONObject? = challenge.webAuthn.map { asked in
            ["type": asked.ceremony.rawValue, "options": asked.options]
        }
        return ServerResponse([
            "id": challenge.id, "factor": id, "expires_at": challenge.expiresAt, "webauthn": webAuthn,
        ])
    }

    /// Without a `challenge_id` a challenge is requested first: an authenticator app need not be sent anything.
    func verifyFactor(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let id = call["id"]
        let known = try call.text("challenge_id")
        if let credential = try call.object("credential") {
            return try await verifyFactor(id, known, credential, call)
        }
        guard let code = try call.secret("code") else { throw call.invalid("code", "code or credential is required") }
        if known == nil { try await refuseUnasked(id, of: name, call) }
        let account = try await call.account { name throws(BrokerError) in
            let challenge = if let known { known } else { try await broker.supabase.challenge(name, factor: id).id }
            return try await broker.supabase.verifyFactor(name, factor: id, challenge: challenge, code: code)
        }
        return ServerResponse(account)
    }

    private func verifyFactor(
        _ id: String, _ challenge: String?, _ credential: JSONObject, _ call: Call
    ) async throws(Problem) -> ServerResponse {
        guard !call.has("code") else { throw call.invalid("code", "code and credential exclude each other") }
        guard let challenge else { throw call.invalid("challenge_id", "it is required with a credential") }
        let party = try call.party()
        let account = try await call.account { name throws(BrokerError) in
            try await broker.supabase.verifyFactor(
                name, factor: id, challenge: challenge, credential: credential, party: party)
        }
        return ServerResponse(account)
    }

    /// A phone's code belongs to the challenge whose message brought it. Another challenge would send another message.
    private func refuseUnasked(_ id: String, of name: AccountName, _ call: Call) async throws(Problem) {
        let user = try await call.ask { () throws(BrokerError) in try await broker.account(name).user }
        let factor = user?["factors"]?.array?.first { $0["id"]?.string == id }
        switch factor?["factor_type"]?.string.flatMap({ FactorKind(rawValue: $0) }) {
        case .phone?: throw call.invalid("challenge_id", "it is required for a phone; ask for a challenge first")
        case .webAuthn?: throw call.invalid("credential", "it is required; ask for a challenge first")
        case .totp?, nil: break
        }
    }
}

extension Call {
    fileprivate func party() throws(Problem) -> RelyingParty? {
        guard has("rp_id") || has("rp_origins") else { return nil }
        let id = try text("rp_id") ?? ""
        let origins = try list("rp_origins", \.string)
        do throws(FieldError) { return try RelyingParty(id: id, origins: origins) } catch {
            throw invalid(error.field, "it is \(error.reason)")
        }
    }
}

extension Component {
    fileprivate static let party: [Member] = .members(
        .optional("rp_id", text: "The domain that the credential belongs to, where the server does not know it"),
        .optional(
            "rp_origins", as: .array(.string), text: "The origins at which the ceremony may be performed, with rp_id"))
    fileprivate static let webAuthn = Component(
        "WebAuthnChallenge",
        .required(
            "type", as: .words(["create", "request"]), text: "Which call of navigator.credentials: create() or get()"),
        .required(
            "options", as: .anyObject,
            text: "For PublicKeyCredential.parseCreationOptionsFromJSON() or parseRequestOptionsFromJSON()"))
}

/// Passkeys of a user at a Supabase project. The app performs the ceremony; options and response are passed on.
struct PasskeyResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .beginPasskey,
            "Request the options for a new passkey; one response is accepted, within five minutes",
            .json(
                "PasskeyChallenge", .required("challenge_id"),
                .required(
                    "options", as: .anyObject,
                    text: "For PublicKeyCredential.parseCreationOptionsFromJSON() or its like"),
                .optional("expires_at", as: .integer)), errors: .ofSession
        ) { (broker, call) throws(Problem) in try await call.ask(broker.supabase.passkeyRegistration).json },
        Route(
            .listPasskeys, "The user's passkeys",
            .json("Passkeys", .required("passkeys", as: .array(.component(.passkey)))), errors: .ofSession
        ) { (broker, call) throws(Problem) in ["passkeys": try await call.ask(broker.supabase.passkeys).map(\.json)] },
        Route(
            .registerPasskey, "Add the passkey that an authenticator has made",
            body: .members(
                .required("challenge_id"), .required("credential", as: .anyObject, text: Schema.credentialText)),
            status: 201, .json(.passkey), errors: .ofSession
        ) { (broker, call) throws(Problem) in
            let id = try call.required("challenge_id")
            guard let credential = try call.object("credential") else {
                throw call.invalid("credential", "it is required")
            }
            return try await call.ask { name throws(BrokerError) in
                try await broker.supabase.registerPasskey(name, challenge: id, credential: credential)
            }.json
        },
        Route(
            .renamePasskey, "Rename a passkey", body: .members(.required("friendly_name", as: .lengths(1...120))),
            .json(.passkey), errors: .ofSession
        ) { (broker, call) throws(Problem) in
            let title = try call.required("friendly_name")
            return try await call.ask { name throws(BrokerError) in
                try await broker.supabase.renamePasskey(name, call["id"], to: title)
            }.json
        },
        Route(
            .removePasskey, "Remove a passkey: it cannot be used for sign-ins any more",
            .json("RemovedPasskey", .required("account", "removed")), errors: .ofSession
        ) { (broker, call) throws(Problem) in
            try await call.ask { name throws(BrokerError) in try await broker.supabase.removePasskey(name, call["id"]) }
            return ["account": call["account"], "removed": call["id"]]
        },
    ]
}

extension Schema {
    static let credentialText = "The authenticator's response, as PublicKeyCredential.toJSON() writes it"
}

extension Component {
    fileprivate static let passkey = Component(
        "Passkey", .required("id"), .optional("friendly_name", "created_at", "last_used_at"))
}
