import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct SupabaseUser: AccountVerb {
    static let configuration = CommandConfiguration(
        commandName: "user", abstract: "Show the signed-in user, fetched from the project now.")

    @OptionGroup var target: AccountOptions

    func run() throws { SupabaseUser.show(try daemon.calls().project(.getUser, account), json) }

    static func show(_ answer: JSON, _ json: JSONOption) {
        guard !json.isWanted else { return Output.json(answer) }
        let user = answer["user"] ?? .null
        let factors = user.list("factors").count { $0["status"]?.string == "verified" }
        let metadata = user["user_metadata"]
        Output.fields([
            "Id": user["id"]?.string, "Email": address(user, "email"), "Phone": address(user, "phone"),
            "Anonymous": user.isTrue("is_anonymous") ? "yes" : nil,
            "Providers": user["app_metadata"]?.texts("providers").joined(separator: ", "),
            "Factors": factors == 0 ? nil : "\(factors)", "Since": user["created_at"]?.string,
            "Last seen": user["last_sign_in_at"]?.string,
            "Metadata": metadata?.object?.members.isEmpty == false ? metadata?.text : nil,
        ])
    }

    /// The address, whether it is confirmed, and the new one that waits for its confirmation.
    private static func address(_ user: JSON, _ name: String) -> String {
        let (text, next) = (user.text(name), user.text("new_\(name)"))
        let isOpen = !text.isEmpty && user["\(name)_confirmed_at"]?.string == nil
        return [isOpen ? "\(text) (not confirmed)" : text, next.isEmpty ? "" : "\(next) waits for its confirmation"]
            .filter { !$0.isEmpty }.joined(separator: "; ")
    }
}

struct SupabaseVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "supabase", abstract: "Manage your user and your sign-in methods at a Supabase project.",
        subcommands: [
            SupabaseUser.self, SupabaseUpdateUser.self, SupabaseResetPassword.self, SupabaseReauthenticate.self,
            ListVerb<Identity>.self, SupabaseLink.self, RemoveVerb<Identity>.self, ListVerb<Consent>.self,
            RemoveVerb<Consent>.self, ListVerb<Factor>.self, SupabaseEnroll.self, SupabaseVerifyFactor.self,
            RemoveVerb<Factor>.self, ListVerb<Passkey>.self, SupabaseRegisterPasskey.self,
            SupabaseRenamePasskey.self, RemoveVerb<Passkey>.self, CallVerb<DatabaseFunction>.self,
            CallVerb<EdgeFunction>.self,
        ])
}

struct SupabaseUpdateUser: AccountVerb {
    static let configuration = CommandConfiguration(
        commandName: "update-user", abstract: "Change the user who is signed in.",
        discussion: """
            A new address or number takes effect once the codes of its messages were entered; the project may require \
            a code from the current address too. Codes are asked for on the terminal; otherwise they are lines of \
            --code-fd, or “ringback verify” reads them later. Secrets are read as with login: from the terminal if \
            the descriptor is 0 and is a terminal, otherwise from a line of it.
            """)

    @OptionGroup var target: AccountOptions
    @Option(help: "A new email address.") var email: String?
    @Option(help: .value("number", "A new phone number.")) var phone: String?
    @Option(help: "How the code is sent to the phone.") var channel: SignInOptions.Channel?
    @Option(help: .value("json", "A JSON object, merged into the metadata.")) var data: String?

    @Flag(help: "A new password: asked for twice on the terminal, otherwise a line of standard input.")
    var password = false

    @Option(help: .descriptor("a new password")) var passwordFD: Int32?
    @Option(help: .descriptor("the code of “supabase reauthenticate”, if a password needs one,")) var nonceFD: Int32?
    @Option(help: .descriptor("the current password, if a new one needs it,")) var currentPasswordFD: Int32?
    @Option(help: .descriptor("the codes that were sent, a line each,")) var codeFD: Int32?
    @Flag(help: "Do not wait for the codes of a new address or number.") var noWait = false

    private var changesPassword: Bool { password || passwordFD != nil }

    func validate() throws {
        try require(
            email != nil || phone != nil || data != nil || changesPassword,
            "Name what to change: --email, --phone, --data or --password.")
        try require(channel == nil || phone != nil, "--channel belongs to --phone.")
        try SignInOptions.check(phone: phone)
        try require(
            changesPassword || (nonceFD == nil && currentPasswordFD == nil),
            "--nonce-fd and --current-password-fd belong to --password or --password-fd.")
        try require(
            email != nil || phone != nil || (codeFD == nil && !noWait),
            "--code-fd and --no-wait belong to --email or --phone.")
        try require(codeFD == nil || !noWait, "--code-fd and --no-wait exclude each other.")
        try SignInOptions.check([passwordFD, nonceFD, currentPasswordFD, codeFD])
        try require(data.map { JSONInput.object($0) != nil } ?? true, "--data must be a JSON object.")
    }

    func run() throws {
        try Signals.interruption()
        // The members are read in this order.
        let body: JSONObject = [
            "email": email, "phone": phone, "channel": channel?.rawValue, "data": data.flatMap(JSONInput.object),
            "current_password": try SecretInput.readNamed("current password", from: currentPasswordFD),
            "nonce": try SecretInput.readNamed("code", from: nonceFD),
            "password": try changesPassword ? SecretInput.readNew("new password", from: passwordFD) : nil,
        ]
        let answer = try explaining(daemon.calls().project(.updateUser, account, body: body)) {
            SupabaseUpdateUser.explained($0, account)
        }
        guard let flow = answer["flow"].flatMap(Flow.init(reading:)) else { return SupabaseUser.show(answer, json) }
        if json.isWanted { Output.json(answer) }
        guard !noWait, codeFD != nil || SecretInput.asksUser(nil) else {
            if !json.isWanted { SupabaseUser.show(answer, json) }
            return Output.note(later)
        }
        try confirm(flow)
        SupabaseUser.show(try daemon.calls().project(.getUser, account), json)
    }

    private var later: String { "It waits for its code. To confirm it: \(shown: "ringback verify \(account)")" }

    private func confirm(_ flow: Flow) throws(RingbackError) {
        let calls = try daemon.interruptibleCalls()
        do throws(RingbackError) {
            let ended = try CodeEntry(calls: calls, descriptor: codeFD).finish(flow)
            if let failure = ended.failure { throw failure }
        } catch {
            guard error.kind == .cancelled else { throw error }
            // The change is pending at the project. It is not cancelled when the user ends the input.
            throw RingbackError(.cancelled, "Nothing was confirmed. \(later)")
        }
    }

    /// A project may ask for a new proof of identity before the password is changed. The advice names the next step.
    static func explained(_ error: RingbackError, _ account: String) -> RingbackError {
        var error = error
        switch error.providerCode {
        case "reauthentication_needed":
            error.advice = "To have a code sent, run: \(shown: "ringback supabase reauthenticate \(account)")"
            // Signing in again would do as well, but one advice is enough.
            error.userMessage = nil
            error.recovery = .none
        case "insufficient_aal":
            error.advice = "Run: \(shown: "ringback supabase verify-factor \(account)"), then repeat this command."
        default: break
        }
        return error
    }
}

struct SupabaseReauthenticate: AccountVerb {
    static let configuration = CommandConfiguration(
        commandName: "reauthenticate", abstract: "Send the code that a change of the password may require.",
        discussion:
            "It goes to the address or number that the project knows; “supabase update-user --nonce-fd” takes it.")

    @OptionGroup var target: AccountOptions

    func run() throws {
        let answer = try daemon.calls().project(.reauthenticate, account, body: JSONObject())
        json.print(
            answer,
            or: "A code was sent. Then: \(shown: "ringback supabase update-user \(account) --password --nonce-fd 0")")
    }
}

struct MigrateUser: AccountVerb {
    static let configuration = CommandConfiguration(
        commandName: "migrate-user", abstract: "Store an app's former identifier of the signed-in user.",
        discussion: """
            The app finds it with the session (migration), moves the user's data, and reports that with --done. Storing \
            the same identifier again changes nothing.
            """)

    @OptionGroup var target: AccountOptions
    @Option(help: .value("id", "The user's former identifier.")) var from: String?
    @Flag(help: "The data has been moved.") var done = false

    func validate() throws { try require((from != nil) != done, "Name either --from ID or --done.") }

    func run() throws {
        let answer = try daemon.calls().call(
            done ? .acknowledgeMigration : .migrate, [account], body: from.map { ["from": .string($0)] })
        guard !json.isWanted else { return Output.json(answer) }
        guard let migration = answer["migration"] else {
            return Output.line("\(Sanitizer.line(account)) has nothing to migrate.")
        }
        let (former, present) = (migration.text("from"), migration.text("to"))
        Output.line("\(Sanitizer.line(account)): \(Sanitizer.line(former)) is \(Sanitizer.line(present)) now.")
    }
}

/// A kind of function of a project. One verb serves both kinds.
protocol ProjectFunction {
    static var verb: CommandConfiguration { get }
    static var endpoint: Endpoint { get }
}

enum DatabaseFunction: ProjectFunction {
    static let verb = CommandConfiguration(
        commandName: "rpc", abstract: "Call a function of the project's database as the signed-in user.",
        discussion: "The functions that may be called are those that the account's configuration lists (rpc).")
    static let endpoint = Endpoint.callFunction
}

enum EdgeFunction: ProjectFunction {
    static let verb = CommandConfiguration(
        commandName: "invoke", abstract: "Call an Edge Function of the project as the signed-in user.",
        discussion: """
            The functions that may be called are those that the account's configuration lists (edge_functions). A text \
            is printed as a JSON string.
            """)
    static let endpoint = Endpoint.invokeFunction
}

struct CallVerb<Function: ProjectFunction>: AccountVerb {
    static var configuration: CommandConfiguration { Function.verb }

    @OptionGroup var target: AccountOptions
    @Argument(help: "The function's name.") var function: String

    @Argument(help: .value("json", "Its arguments, a JSON object; “-” reads it from standard input."))
    var arguments = "{}"

    func validate() throws {
        try require(arguments == "-" || JSONInput.object(arguments) != nil, "The arguments must be a JSON object.")
    }

    func run() throws {
        var text = arguments == "-" ? "" : arguments
        if arguments == "-" { while let line = readLine(strippingNewline: false) { text += line } }
        guard let body = JSONInput.object(text) else {
            throw RingbackError(ExitStatus.usageKind, "The arguments must be a JSON object.")
        }
        let answer = try daemon.calls().project(Function.endpoint, account, function, body: body)
        Output.json(json.isWanted ? answer : answer["result"] ?? .null)
    }
}

/// What to run after a project has refused a sign-in, with the typed address or number: it can be run as printed.
struct SupabaseAdvice {
    let account: String
    let fields: JSONObject

    func advised(_ error: RingbackError) -> RingbackError {
        if let advice = missing(error["field"]?.string) { return error.adding(advice) }
        guard let (reason, command) = next(after: error) else { return error }
        return error.adding("\(reason), run: \(shown: command)")
    }

    private func missing(_ field: String?) -> String? {
        guard let field, fields[field] == nil else { return nil }
        switch (field, method) {
        case ("oauth_provider", "browser"):
            return "Choose the method on a page: \(shown: "ringback login \(account) --page"). Or name it: "
                + "\(shown: "ringback login \(account) --with PROVIDER"), or "
                + "\(shown: "ringback login \(account) --method password --email ADDRESS")"
        case ("id_token", "id_token"):
            return
                "Pass one: \(shown: "ringback login \(account) --method id_token --with PROVIDER"); or name an account: "
                + "\(shown: "ringback login \(account) --from ACCOUNT")"
        default: return nil
        }
    }

    private func next(after error: RingbackError) -> (reason: String, command: ShownCommand)? {
        switch (error.providerCode ?? error.kind.rawValue, method) {
        case ("email_not_confirmed", _), ("phone_not_confirmed", _): return login("To confirm it by a code", "otp")
        case ("user_already_exists", "sign_up"), ("email_exists", "sign_up"), ("phone_exists", "sign_up"),
            ("email_already_in_use", "sign_up"):
            return login("If it is yours", "password")
        // For a phone number that has a user already. Other conflicts are with a sign-in or a session here.
        case ("state_conflict", "sign_up") where error.recovery == .signIn: return login("If it is yours", "password")
        case ("otp_disabled", "otp"), ("user_not_found", "otp"), ("otp_disabled", "magic_link"),
            ("user_not_found", "magic_link"):
            return login("To sign up", "sign_up")
        case ("invalid_credentials", "password"):
            guard let email else { return login("To sign in by a code", "otp") }
            let reset = ShownCommand("ringback supabase reset-password \(account) --email=\(email)")
            return ("If the password is forgotten", reset)
        case ("identity_already_exists", nil):
            return text("oauth_provider").map {
                ("To sign in with it instead", ShownCommand("ringback login \(account) --with=\($0) --switch"))
            }
        default:
            guard error.recovery == .signIn, error.advice == nil, options != "" else { return nil }
            return ("To begin again", ShownCommand("ringback login \(account) \(options)"))
        }
    }

    /// The options that made this sign-in what it was, as they were typed. Empty if the configuration says everything.
    var options: ShownCommand {
        guard let method else { return "" }
        var options = method == "browser" ? [] : ["--method=\(method)"]
        for (name, option) in SupabaseAdvice.repeated { text(name).map { options.append("--\(option)=\($0)") } }
        // A session that was not to be stored must not be stored the second time.
        for (name, option) in [("persist", "--no-persist"), ("create_user", "--no-create-user")]
        where fields[name]?.bool == false { options.append(option) }
        return ShownCommand(words: options)
    }

    /// Fields that are options of `login`.
    private static let repeated = [
        ("oauth_provider", "with"), ("from_account", "from"), ("email", "email"), ("phone", "phone"),
        ("channel", "channel"), ("domain", "domain"), ("provider_id", "provider-id"), ("scopes", "scopes"),
    ]

    /// Nil where the request is no sign-in.
    private var method: String? { text("method") }
    private var email: String? { text("email") }

    private func login(_ reason: String, _ method: String) -> (String, ShownCommand)? {
        let who: ShownCommand? = email.map { "--email=\($0)" } ?? text("phone").map { "--phone=\($0)" }
        return who.map { (reason, ShownCommand("ringback login \(account) --method=\(method) \($0)")) }
    }

    private func text(_ name: String) -> String? { fields[name]?.string.map { Sanitizer.line($0) } }
}

/// A sign-in by password alone must not look complete if the user has a second factor.
enum Assurance {
    /// `aal1`, or `aal1, needs aal2`; nil where the provider has no levels.
    static func text(_ level: String?, _ next: String?) -> String? {
        guard let level else { return nil }
        guard let next, next != level else { return level }
        return "\(level), needs \(next)"
    }

    static func hint(_ name: String, _ account: JSON) -> String? {
        guard let level = account["aal"]?.string, let next = account["next_aal"]?.string, level != next else {
            return nil
        }
        return "A second factor must still be verified (\(Sanitizer.line(level)), needs \(Sanitizer.line(next))). "
            + "Run: \(shown: "ringback supabase verify-factor \(name)")"
    }
}

struct SupabaseResetPassword: AccountVerb {
    static let configuration = CommandConfiguration(
        commandName: "reset-password", abstract: "Choose a new password if the current one is forgotten.",
        discussion: """
            A mail with a code is sent to an address that the project knows. The code is read as with login, then the \
            code of the second factor, if the user has one, then the new password: asked for twice on the terminal, \
            otherwise the next line of standard input, if there is one. Without a new password the user is signed in, \
            and “supabase update-user --password” sets one later.
            """)

    @OptionGroup var target: AccountOptions
    @Option(help: "The user's address.") var email: String
    @Flag(help: "Replace another pending sign-in of the account.") var replace = false
    @Option(help: .descriptor("the code")) var codeFD: Int32?
    @Option(help: .descriptor("the new password")) var passwordFD: Int32?
    @Option(help: .descriptor("the proof of a CAPTCHA")) var captchaTokenFD: Int32?

    func validate() throws { try SignInOptions.check([codeFD, passwordFD, captchaTokenFD]) }

    func run() throws {
        let calls = try daemon.interruptibleCalls()
        let run = SignInRun(
            account: account, opensBrowser: false, endpoint: .resetPassword,
            fields: [
                "email": email, "replace": replace ? true : nil,
                "captcha_token": try SecretInput.readNamed("CAPTCHA token", from: captchaTokenFD),
            ], codeFD: codeFD, printsJSON: json.isWanted)
        var recovered = try run.finish(calls)
        do throws(RingbackError) {
            recovered = try verifyFactor(recovered, calls)
            if let answer = try setPassword(calls) {
                if json.isWanted { return Output.json(answer) }
                return Output.line("The password of \(account) was changed.")
            }
        } catch {
            throw advised(error)
        }
        if json.isWanted { return Output.json(recovered) }
        Output.line(SignInRun.result(account, recovered))
        if let hint = Assurance.hint(account, recovered) { Output.note(hint) }
        Output.note(SupabaseResetPassword.later(account))
    }

    static func later(_ account: String) -> String {
        "To choose a password: \(shown: "ringback supabase update-user \(account) --password")"
    }

    private static func withFactor(_ account: String) -> String {
        "To choose the password: \(shown: "ringback supabase verify-factor \(account)"), then "
            + "\(shown: "ringback supabase update-user \(account) --password")"
    }

    /// The user is signed in already, and another recovery would begin anew, also with the second factor.
    private func advised(_ error: RingbackError) -> RingbackError {
        var explained = SupabaseUpdateUser.explained(error, account)
        if error.providerCode == "insufficient_aal" { explained.advice = SupabaseResetPassword.withFactor(account) }
        explained.advice = explained.advice ?? SupabaseResetPassword.later(account)
        return explained
    }

    /// The project changes no password without the user's second factor. Returns the account's JSON at its new level,
    /// or as it is if no code can be read.
    private func verifyFactor(_ recovered: JSON, _ calls: BrokerCalls) throws(RingbackError) -> JSON {
        guard Assurance.hint(account, recovered) != nil else { return recovered }
        let isAsking = SecretInput.asksUser(nil)
        // Without a user to ask, no message is sent to a phone: its code could not be read.
        let factors = try Factor.all(in: calls.project(.listFactors, account)).filter {
            $0.isVerified && ($0.kind == .totp || $0.kind == .phone && isAsking)
        }
        guard let factor = try choose(among: factors, isAsking) else { return recovered }
        let proof = FactorProof(account: account, calls: calls, isJSON: json.isWanted)
        do throws(RingbackError) {
            return try proof.give(factor, channel: nil)
        } catch {
            guard error.kind == .cancelled, !isAsking, !Signals.isInterrupted else {
                throw error.with(advice: SupabaseResetPassword.withFactor(account))
            }
            return recovered
        }
    }

    private func choose(among factors: [Factor], _ isAsking: Bool) throws(RingbackError) -> Factor? {
        guard factors.count > 1, isAsking else { return factors.first }
        Output.note("The user has \(factors.count) second factors:")
        let labels = factors.map { factor in
            "\(Sanitizer.line(factor.name ?? factor.phone ?? factor.id)) (\(factor.kind.rawValue))"
        }
        let questions = Questions(ending: "The factor was not verified.")
        return factors[try questions.choose("Number of the factor", among: labels)]
    }

    /// Sets the new password; nil if none is given. A user is asked until the project accepts one.
    private func setPassword(_ calls: BrokerCalls) throws(RingbackError) -> JSON? {
        while true {
            guard let password = try newPassword() else { return nil }
            do throws(RingbackError) {
                return try calls.project(.updateUser, account, body: ["password": password])
            } catch {
                guard SecretInput.asksUser(passwordFD),
                    [.weakPassword, "password_reset_failed", .validationFailed].contains(error.kind),
                    error.recovery == .none
                else { throw error }
                Failure(error: error, account: account).show()
            }
        }
    }

    /// Asked for until the same is typed twice; nil for none.
    private func newPassword() throws(RingbackError) -> String? {
        guard SecretInput.asksUser(passwordFD) else {
            return try SecretInput.readOptional("new password", from: passwordFD)
        }
        while true {
            let hint = ", empty to choose it later"
            guard let first = try SecretInput.readOptional("new password", from: nil, hint: hint) else { return nil }
            if try SecretInput.readOptional("same again", from: nil) == first { return first }
            Output.note("The two are not the same.")
        }
    }
}
