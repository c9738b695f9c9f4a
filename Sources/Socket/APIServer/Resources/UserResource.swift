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
            .json("FunctionResult", .required("result", as: .anything)), errors: .ofSession
        ) { (broker, call) throws(Problem) in
            let value = try await call.ask { name throws(BrokerError) in
                try await broker.supabase.call(name, function: call["function"], arguments: call.wholeBody)
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
