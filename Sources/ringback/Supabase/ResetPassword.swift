import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct SupabaseResetPassword: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset-password", abstract: "Choose a new password if the current one is forgotten.",
        discussion: """
            A mail with a code is sent to an address that the project knows. The code is read as with login, then the \
            new password: asked for twice on the terminal, otherwise the next line of standard input, if there is one. \
            Without a new password the user is signed in, and “supabase update-user --password” sets one later.
            """)

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @Option(help: "The user's address.")
    var email: String

    @Flag(help: "Replace another pending sign-in of the account.")
    var replace = false

    @Option(name: .customLong("code-fd"), help: SignInOptions.descriptor("the code"))
    var codeDescriptor: Int32?

    @Option(name: .customLong("password-fd"), help: SignInOptions.descriptor("the new password"))
    var passwordDescriptor: Int32?

    @Option(name: .customLong("captcha-token-fd"), help: SignInOptions.descriptor("the proof of a CAPTCHA"))
    var captchaDescriptor: Int32?

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws { try SignInOptions.check([codeDescriptor, passwordDescriptor, captchaDescriptor]) }

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let interruption = try Signals.interruption()
            let input = SecretInput(interruption: interruption)
            let calls = try daemon.calls(interruption)
            var run = SignInRun(account: account, opensBrowser: false)
            run.endpoint = .resetPassword
            run.fields = JSONObject([.init("email", .string(email))])
            if replace { run.fields["replace"] = true }
            if let captchaDescriptor {
                run.fields["captcha_token"] = .string(try input.read("CAPTCHA token", from: captchaDescriptor))
            }
            run.codeDescriptor = codeDescriptor
            run.began = { [json] _, document in if json.isWanted { Output.json(document) } }
            let recovered = try run.finish(calls)
            guard let password = try newPassword(input) else {
                if json.isWanted { return Output.json(recovered) }
                Output.line(SignInRun.result(account, recovered))
                return Output.note("To choose a password: ringback supabase update-user \(account) --password")
            }
            let body = JSONObject([.init("password", .string(password))])
            let answer: JSON
            do throws(RingbackError) {
                answer = try calls.project(.updateUser, account, body: body)
            } catch {
                throw SupabaseUpdateUser.explained(error, account)
            }
            if json.isWanted { Output.json(answer) } else { Output.line("The password of \(account) was changed.") }
        }
    }

    /// Asked for until the same is typed twice; nil for none.
    private func newPassword(_ input: SecretInput) throws(RingbackError) -> String? {
        guard SecretInput.asksUser(passwordDescriptor) else {
            return try input.readOptional("new password", from: passwordDescriptor)
        }
        while true {
            guard let first = try input.readOptional("new password", from: nil, hint: ", empty to choose it later")
            else { return nil }
            if try input.readOptional("same again", from: nil) == first { return first }
            Output.note("The two are not the same.")
        }
    }
}
