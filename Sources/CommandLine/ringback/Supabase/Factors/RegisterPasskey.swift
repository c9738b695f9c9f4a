import ArgumentParser
import RingbackClient
import StrictJSON
import Terminal

struct SupabaseRegisterPasskey: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "register-passkey", abstract: "Add a passkey that an app or a web page makes.",
        discussion: """
            Prints the authenticator's options as JSON on one line, for navigator.credentials.create() or an app's own \
            interface. Its response, PublicKeyCredential.toJSON(), is read from standard input or from the named \
            descriptor. The project accepts one response, within five minutes, from the origins that it lists. This \
            program has no authenticator of its own.
            """)

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @Option(name: .customLong("credential-fd"), help: SignInOptions.descriptor("the credential, as JSON,"))
    var credentialDescriptor: Int32?

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws { try SignInOptions.check([credentialDescriptor]) }

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let entry = PasskeyEntry(
                input: SecretInput(interruption: try Signals.interruption()), descriptor: credentialDescriptor)
            let calls = try daemon.calls()
            let challenge = try calls.beginPasskey(account)
            let known = try PasskeyChallenge(reading: challenge)
            if json.isWanted { Output.json(challenge) } else { Output.line(known.options) }
            guard let credential = try entry.read("navigator.credentials.create()") else {
                throw entry.unread
            }
            let answer = try calls.registerPasskey(account, challenge: known.id, credential: credential)
            guard !json.isWanted else { return Output.json(answer) }
            let id = Sanitizer.line(try Passkey(reading: answer).id)
            Output.line("Added \(id)")
            Output.note("To name it: \(shown: "ringback supabase rename-passkey \(account) \(id) NAME")")
        }
    }
}
