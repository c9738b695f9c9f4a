import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct SupabaseUser: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "user", abstract: "Show the signed-in user, fetched from the project now.")

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let answer = try daemon.calls().project(.getUser, account)
            if json.isWanted { Output.json(answer) } else { SupabaseUser.show(answer["user"] ?? .null) }
        }
    }

    static func show(_ user: JSON) {
        Output.field("Id", user["id"]?.string)
        Output.field("E-mail", address(user, "email", "new_email"))
        Output.field("Phone", address(user, "phone", "new_phone"))
        if user["is_anonymous"]?.bool == true { Output.field("Anonymous", "yes") }
        let providers = user["app_metadata"]?["providers"]?.array?.compactMap(\.string) ?? []
        Output.field("Providers", providers.joined(separator: ", "))
        let factors = user["factors"]?.array?.filter { $0["status"]?.string == "verified" } ?? []
        Output.field("Factors", factors.isEmpty ? nil : "\(factors.count)")
        Output.field("Since", user["created_at"]?.string)
        Output.field("Last seen", user["last_sign_in_at"]?.string)
        if let data = user["user_metadata"]?.object, !data.members.isEmpty {
            Output.field("Metadata", JSON.object(data).text)
        }
    }

    /// The address, whether it is confirmed, and the new one that waits for its confirmation.
    private static func address(_ user: JSON, _ name: String, _ new: String) -> String? {
        var text = user[name]?.string ?? ""
        if !text.isEmpty, user["\(name)_confirmed_at"]?.string == nil { text += " (not confirmed)" }
        if let next = user[new]?.string, !next.isEmpty {
            text += (text.isEmpty ? "" : "; ") + "\(next) waits for its confirmation"
        }
        return text
    }
}

/// The verbs that are only for Supabase projects.
struct SupabaseVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "supabase", abstract: "Manage your user and your sign-in methods at a Supabase project.",
        subcommands: [
            SupabaseUser.self, SupabaseUpdateUser.self, SupabaseResetPassword.self, SupabaseReauthenticate.self,
            SupabaseIdentities.self, SupabaseLink.self, SupabaseUnlink.self, SupabaseConsents.self,
            SupabaseRevokeConsent.self, SupabaseFactors.self, SupabaseEnroll.self, SupabaseVerifyFactor.self,
            SupabaseRemoveFactor.self, SupabasePasskeys.self,
            SupabaseRegisterPasskey.self, SupabaseRenamePasskey.self, SupabaseRemovePasskey.self, SupabaseRPC.self,
        ])
}

struct SupabaseUpdateUser: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "update-user", abstract: "Change the user who is signed in.",
        discussion: """
            A new address or number takes effect once the codes of its messages were entered; the project may require \
            a code from the current address too. Codes are asked for on the terminal; otherwise they are lines of \
            --code-fd, or “ringback verify” reads them later. Secrets are read as with login: from the terminal if \
            the descriptor is 0 and is a terminal, otherwise from a line of it.
            """)

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @Option(help: "A new e-mail address.")
    var email: String?

    @Option(help: ArgumentHelp("A new phone number.", valueName: "number"))
    var phone: String?

    @Option(help: "How the code is sent to the phone.")
    var channel: SignInOptions.Channel?

    @Option(help: ArgumentHelp("A JSON object, merged into the metadata.", valueName: "json"))
    var data: String?

    @Flag(help: "A new password: asked for twice on the terminal, otherwise a line of standard input.")
    var password = false

    @Option(name: .customLong("password-fd"), help: SignInOptions.descriptor("a new password"))
    var passwordDescriptor: Int32?

    @Option(
        name: .customLong("nonce-fd"),
        help: SignInOptions.descriptor("the code of “supabase reauthenticate”, if a password needs one,"))
    var nonceDescriptor: Int32?

    @Option(
        name: .customLong("current-password-fd"),
        help: SignInOptions.descriptor("the current password, if a new one needs it,"))
    var currentDescriptor: Int32?

    @Option(name: .customLong("code-fd"), help: SignInOptions.descriptor("the codes that were sent, a line each,"))
    var codeDescriptor: Int32?

    @Flag(help: "Do not wait for the codes of a new address or number.")
    var noWait = false

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    private var changesPassword: Bool { password || passwordDescriptor != nil }

    func validate() throws {
        guard email != nil || phone != nil || data != nil || changesPassword else {
            throw ValidationError("Name what to change: --email, --phone, --data or --password.")
        }
        guard channel == nil || phone != nil else { throw ValidationError("--channel belongs to --phone.") }
        guard changesPassword || (nonceDescriptor == nil && currentDescriptor == nil) else {
            throw ValidationError("--nonce-fd and --current-password-fd belong to --password or --password-fd.")
        }
        guard email != nil || phone != nil || (codeDescriptor == nil && !noWait) else {
            throw ValidationError("--code-fd and --no-wait belong to --email or --phone.")
        }
        guard codeDescriptor == nil || !noWait else {
            throw ValidationError("--code-fd and --no-wait exclude each other.")
        }
        try SignInOptions.check([passwordDescriptor, nonceDescriptor, currentDescriptor, codeDescriptor])
        if let data, JSONInput.object(data) == nil { throw ValidationError("--data must be a JSON object.") }
    }

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let interruption = try Signals.interruption()
            let body = try body(SecretInput(interruption: interruption))
            let answer: JSON
            do throws(RingbackError) {
                answer = try daemon.calls().project(.updateUser, account, body: body)
            } catch {
                throw SupabaseUpdateUser.explained(error, account)
            }
            guard let flow = answer["flow"].flatMap(Flow.init(reading:)) else { return show(answer) }
            if json.isWanted { Output.json(answer) }
            guard !noWait, codeDescriptor != nil || SecretInput.asksUser(nil) else {
                if !json.isWanted { show(answer) }
                return Output.note(later)
            }
            try confirm(flow, interruption)
            show(try daemon.calls().project(.getUser, account))
        }
    }

    private func show(_ answer: JSON) {
        if json.isWanted { Output.json(answer) } else { SupabaseUser.show(answer["user"] ?? .null) }
    }

    private var later: String { "It waits for its code. To confirm it: \(shown: "ringback verify \(account)")" }

    private func confirm(_ flow: Flow, _ interruption: Interruption) throws(RingbackError) {
        let calls = try daemon.calls(interruption)
        do throws(RingbackError) {
            let ended = try CodeEntry(calls, interruption, from: codeDescriptor).finish(flow)
            if let failure = ended.failure { throw failure }
        } catch {
            guard error.kind == .cancelled else { throw error }
            // The change is pending at the project. It is not cancelled when the user ends the input.
            throw RingbackError(.cancelled, "Nothing was confirmed. \(later)")
        }
    }

    private func body(_ input: SecretInput) throws(RingbackError) -> JSONObject {
        var body = JSONObject()
        body["email"] = email.map { .string($0) }
        body["phone"] = phone.map { .string($0) }
        body["channel"] = channel.map { .string($0.rawValue) }
        body["data"] = data.flatMap(JSONInput.object).map { .object($0) }
        if let currentDescriptor {
            body["current_password"] = .string(try input.read("current password", from: currentDescriptor))
        }
        if let nonceDescriptor { body["nonce"] = .string(try input.read("code", from: nonceDescriptor)) }
        if changesPassword { body["password"] = .string(try input.readNew("new password", from: passwordDescriptor)) }
        return body
    }

    /// A project may ask for a new proof of identity before the password is changed. The advice names the next step.
    static func explained(_ error: RingbackError, _ account: String) -> RingbackError {
        var error = error
        switch error.problem?.extensions["provider_code"]?.string {
        case "reauthentication_needed":
            error.advice = "To have a code sent, run: \(shown: "ringback supabase reauthenticate \(account)")"
            // Signing in again would do as well, but one advice is enough.
            error.userMessage = nil
            error.recovery = .none
        case "insufficient_aal":
            error.advice =
                "Run: \(shown: "ringback supabase verify-factor \(account)"), then repeat this command."
        default: break
        }
        return error
    }
}

struct SupabaseReauthenticate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reauthenticate", abstract: "Send the code that a change of the password may require.",
        discussion:
            "It goes to the address or number that the project knows; “supabase update-user --nonce-fd” takes it.")

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let answer = try daemon.calls().project(.reauthenticate, account, body: JSONObject())
            guard !json.isWanted else { return Output.json(answer) }
            Output.line(
                "A code was sent. Then: \(shown: "ringback supabase update-user \(account) --password --nonce-fd 0")")
        }
    }
}

struct MigrateUser: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate-user", abstract: "Store an app's former identifier of the signed-in user.",
        discussion: """
            The app finds it with the session (migration), moves the user's data, and reports that with --done. Storing \
            the same identifier again changes nothing.
            """)

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @Option(help: ArgumentHelp("The user's former identifier.", valueName: "id"))
    var from: String?

    @Flag(help: "The data has been moved.")
    var done = false

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard (from != nil) != done else { throw ValidationError("Name either --from ID or --done.") }
    }

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let answer = try daemon.calls().call(
                done ? .acknowledgeMigration : .migrate, [account], body: from.map { ["from": .string($0)] })
            guard !json.isWanted else { return Output.json(answer) }
            guard let migration = answer["migration"] else {
                return Output.line("\(Sanitizer.line(account)) has nothing to migrate.")
            }
            let (former, present) = (migration["from"]?.string ?? "", migration["to"]?.string ?? "")
            Output.line("\(Sanitizer.line(account)): \(Sanitizer.line(former)) is \(Sanitizer.line(present)) now.")
        }
    }
}

struct SupabaseRPC: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rpc", abstract: "Call a function of the project's database as the signed-in user.",
        discussion: "The functions that may be called are those that the account's configuration lists (rpc).")

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @Argument(help: "The function's name.")
    var function: String

    @Argument(help: ArgumentHelp("Its arguments, a JSON object; “-” reads it from standard input.", valueName: "json"))
    var arguments = "{}"

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard arguments == "-" || JSONInput.object(arguments) != nil else {
            throw ValidationError("The arguments must be a JSON object.")
        }
    }

    func run() throws {
        var text = arguments
        if arguments == "-" {
            text = ""
            while let line = readLine(strippingNewline: false) { text += line }
        }
        guard let body = JSONInput.object(text) else {
            Output.note("ringback: The arguments must be a JSON object.")
            throw ExitCode(ExitStatus.usage)
        }
        try present(account: account) { () throws(RingbackError) in
            let answer = try daemon.calls().project(.callFunction, account, function, body: body)
            Output.json(json.isWanted ? answer : answer["result"] ?? .null)
        }
    }
}
