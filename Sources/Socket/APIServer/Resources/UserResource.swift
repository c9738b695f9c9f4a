internal import BrokerCore
internal import LocalHTTP
internal import RingbackAPI
internal import StrictJSON
internal import SupabaseAuth
internal import SupabaseSignIn

/// What users can change about themselves, if the provider lets programs do it: at a Supabase project.
struct UserResource: Resource {
    let api: SocketAPI

    static let routes: [Route] = [
        Route(.getUser, "The user, as the server has it now", .json(.user), errors: .ofSession, UserResource.getUser),
        Route(
            .updateUser, "Change the user; an address or a number waits for its codes in a flow",
            body: .members([
                .optional("email", .string), .optional("phone", .string), .secret("password"),
                .secret("password_confirmation"), .secret("current_password"), .optional("nonce", .string),
                .optional("data", .anyObject), .optional("channel", .channel),
            ]), .json(.changedUser), errors: .ofFlow, UserResource.updateUser),
        Route(
            .resetPassword, "Send a mail to a user who forgot the password",
            body: .members([
                .optional("email", .string), .optional("captcha_token", .string), SignInResource.replace,
            ]), statuses: [200, 201], .json(.beginning), errors: .ofFlow, UserResource.resetPassword),
        Route(
            .reauthenticate, "Send the code that a change of the password may require", .json(.sent),
            errors: .ofSession,
            UserResource.reauthenticate),
        Route(
            .callFunction, "Call a function of the project's database that the configuration lists", body: .open,
            .json(.functionResult), errors: .ofSession, UserResource.callFunction),
        Route(
            .migrate, "Store the app's former identifier of this user",
            body: .members([.optional("from", .string)]), .json(.account), errors: .ofSession, UserResource.migrate),
        Route(
            .acknowledgeMigration, "The app has moved the user's data", .json(.account), errors: .ofSession,
            UserResource.acknowledgeMigration),
    ]

    func getUser(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let user = try await call.ask { () throws(BrokerError) in try await broker.supabase.user(name) }
        return ServerResponse(json: ["user": .object(user)])
    }

    func updateUser(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
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
        let changed = try await call.ask { () throws(BrokerError) in try await broker.supabase.update(name, wanted) }
        var answer = JSONObject([.init("user", .object(changed.user))])
        // The change is complete when the codes of its messages have been redeemed at this flow.
        answer["flow"] = changed.flow.map { $0.json(in: call.language) }
        return ServerResponse(json: .object(answer))
    }

    func resetPassword(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        guard let email = try call.text("email") else { throw call.invalid("email", "it is required") }
        let captcha = try call.secret("captcha_token")
        let replaces = try call.truth("replace")
        let started = try await call.ask { () throws(BrokerError) in
            try await broker.supabase.resetPassword(name, email: email, captcha: captcha, replaces: replaces)
        }
        return try await beginning(started, of: name, call)
    }

    func reauthenticate(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        try await call.ask { () throws(BrokerError) in try await broker.supabase.reauthenticate(name) }
        return ServerResponse(json: ["account": .string(name.rawValue), "sent": true])
    }

    func callFunction(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let function = call.parameters["function"] ?? ""
        let arguments = call.wholeBody
        let value = try await call.ask { () throws(BrokerError) in
            try await broker.supabase.call(name, function: function, arguments: arguments)
        }
        return ServerResponse(json: ["result": value])
    }

    // MARK: Migration

    func migrate(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        guard let former = try call.text("from") else { throw call.invalid("from", "it is required") }
        let view = try await call.ask { () throws(BrokerError) in try await broker.supabase.migrate(name, from: former)
        }
        return ServerResponse(json: view.json(in: call.language))
    }

    func acknowledgeMigration(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let view = try await call.ask { () throws(BrokerError) in try await broker.supabase.acknowledgeMigration(name) }
        return ServerResponse(json: view.json(in: call.language))
    }
}

extension Component {
    fileprivate static let user = Component("User", [.required("user", .anyObject)])
    fileprivate static let changedUser = Component(
        "ChangedUser", [.required("user", .anyObject), .optional("flow", .component(.flow))])
    fileprivate static let sent = Component("Sent", [.required("account", .string), .required("sent", .boolean)])
    fileprivate static let functionResult = Component("FunctionResult", [.required("result", .anything)])
}
