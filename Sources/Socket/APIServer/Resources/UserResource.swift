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
        Route(.getUser, "The user, as the server has it now", .json(.user), errors: .ofSession, UserResource.getUser),
        Route(
            .updateUser, "Change the user; an address or a number waits for its codes in a flow",
            body: .members(
                .optional("email", "phone", "nonce"), .optional("data", as: .anyObject),
                .optional("channel", as: .channel), .secret("password", "password_confirmation", "current_password")),
            .json(.changedUser), errors: .ofFlow, UserResource.updateUser),
        Route(
            .resetPassword, "Send a mail to a user who forgot the password",
            body: .members(.optional("email", "captcha_token"), SignInResource.replace), statuses: [200, 201],
            .json(.beginning), errors: .ofFlow, UserResource.resetPassword),
        Route(
            .reauthenticate, "Send the code that a change of the password may require", .json(.sent),
            errors: .ofSession,
            UserResource.reauthenticate),
        Route(
            .callFunction, "Call a function of the project's database that the configuration lists", body: nil,
            .json(.functionResult), errors: .ofSession, UserResource.callFunction),
        Route(
            .migrate, "Store the app's former identifier of this user",
            body: .members(.optional("from")), .json(.account), errors: .ofSession, UserResource.migrate),
        Route(
            .acknowledgeMigration, "The app has moved the user's data", .json(.account), errors: .ofSession,
            UserResource.acknowledgeMigration),
    ]

    func getUser(_ call: Call) async throws(Problem) -> ServerResponse {
        ServerResponse(["user": try await call.ask(broker.supabase.user)])
    }

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
        let wanted = changes
        let changed = try await call.ask { name throws(BrokerError) in try await broker.supabase.update(name, wanted) }
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

    func reauthenticate(_ call: Call) async throws(Problem) -> ServerResponse {
        try await call.ask(broker.supabase.reauthenticate)
        return ServerResponse(["account": call["account"], "sent": true])
    }

    func callFunction(_ call: Call) async throws(Problem) -> ServerResponse {
        let value = try await call.ask { name throws(BrokerError) in
            try await broker.supabase.call(name, function: call["function"], arguments: call.wholeBody)
        }
        return ServerResponse(["result": value])
    }

    // MARK: Migration

    func migrate(_ call: Call) async throws(Problem) -> ServerResponse {
        let former = try call.required("from")
        return try await account(call) { name throws(BrokerError) in
            try await broker.supabase.migrate(name, from: former)
        }
    }

    func acknowledgeMigration(_ call: Call) async throws(Problem) -> ServerResponse {
        try await account(call, broker.supabase.acknowledgeMigration)
    }
}

extension Component {
    fileprivate static let user = Component("User", .required("user", as: .anyObject))
    fileprivate static let changedUser = Component(
        "ChangedUser", .required("user", as: .anyObject), .optional("flow", as: .component(.flow)))
    fileprivate static let sent = Component("Sent", .required("account"), .required("sent", as: .boolean))
    fileprivate static let functionResult = Component("FunctionResult", .required("result", as: .anything))
}

/// The identities of a user at a Supabase project, and the OAuth clients that the user has allowed there.
struct IdentityResource: Resource {
    let api: SocketAPI

    static let routes: [Route] = [
        Route(
            .listIdentities, "The user's identities", .json(.identities), errors: .ofSession,
            IdentityResource.listIdentities),
        Route(
            .linkIdentity, "Link an identity, in the browser or by an ID token",
            body: .members(
                .optional("oauth_provider", "id_token", "nonce", "access_token", "scopes"),
                .optional("params", as: .map(.string)), .optional("timeout", as: .range(1...3_600)),
                SignInResource.replace), statuses: [200, 201], .json(.beginning), errors: .ofFlow,
            IdentityResource.linkIdentity),
        Route(
            .unlinkIdentity, "Unlink an identity", .json(.identities), errors: .ofSession,
            IdentityResource.unlinkIdentity),
        Route(
            .listConsents, "The OAuth clients of the project that the user has allowed", .json(.consents),
            errors: .ofSession, IdentityResource.listConsents),
        Route(
            .revokeConsent, "Revoke the consent for a client: the project ends its sessions of this user",
            .json(.revokedConsent), errors: .ofSession, IdentityResource.revokeConsent),
    ]

    func listIdentities(_ call: Call) async throws(Problem) -> ServerResponse {
        ServerResponse(["identities": try await call.ask(broker.supabase.user)["identities"] ?? []])
    }

    func linkIdentity(_ call: Call) async throws(Problem) -> ServerResponse {
        try call.refuseStrangers(to: SupabaseMethod.link.method, taking: SupabaseMethod.link.fields)
        var request = SignInRequest(.link)
        request.parameters = try call.authorizationParameters()
        request.timeout = try call.number("timeout", in: 1...3_600).map { .seconds($0) }
        request.scopes = try call.scopes()
        request.replaces = try call.truth("replace")
        request.project = try call.projectSignIn()
        let wanted = request
        return try await beginning(call) { name throws(BrokerError) in try await broker.begin(name, wanted) }
    }

    func unlinkIdentity(_ call: Call) async throws(Problem) -> ServerResponse {
        let user = try await call.ask { name throws(BrokerError) in
            try await broker.supabase.unlink(name, identity: call["id"])
        }
        return ServerResponse(["identities": user["identities"] ?? []])
    }

    func listConsents(_ call: Call) async throws(Problem) -> ServerResponse {
        ServerResponse(["consents": try await call.ask(broker.supabase.consents).map(\.json)])
    }

    func revokeConsent(_ call: Call) async throws(Problem) -> ServerResponse {
        try await call.ask { name throws(BrokerError) in
            try await broker.supabase.revokeConsent(name, client: call["id"])
        }
        return ServerResponse(["account": call["account"], "revoked": call["id"]])
    }
}

extension Component {
    fileprivate static let identities = Component("Identities", .required("identities", as: .array(.anyObject)))
    fileprivate static let consent = Component(
        "Consent", .required("client_id"), .optional("client_name", "client_uri", "granted_at"),
        .required("scopes", as: .array(.string)))
    fileprivate static let consents = Component("Consents", .required("consents", as: .array(.component(.consent))))
    fileprivate static let revokedConsent = Component("RevokedConsent", .required("account", "revoked"))
}
