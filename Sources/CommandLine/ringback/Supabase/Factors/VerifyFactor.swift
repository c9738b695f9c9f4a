import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct SupabaseVerifyFactor: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify-factor", abstract: "Verify a second factor, for a session of the second level.",
        discussion: """
            The code is asked for on the terminal, without echo, until it is right; otherwise it is a line of standard \
            input, or of the named descriptor. For a phone, a code is sent first. For a security key the options of \
            navigator.credentials.get() are printed as JSON on one line, and the credential is read as JSON: this \
            program has no authenticator of its own.
            """)

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @Argument(help: "The factor's id, as “supabase factors” shows it; may be left out if there is only one.")
    var factor: String?

    @Option(name: .customLong("code-fd"), help: SignInOptions.descriptor("the code"))
    var codeDescriptor: Int32?

    @Option(name: .customLong("credential-fd"), help: SignInOptions.descriptor("the credential, as JSON,"))
    var credentialDescriptor: Int32?

    @Option(help: "How the code is sent to a phone.")
    var channel: SignInOptions.Channel?

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws { try SignInOptions.check([codeDescriptor, credentialDescriptor]) }

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let interruption = try Signals.interruption()
            let calls = try daemon.calls()
            let factors = try SupabaseFactors.read(try calls.project(.listFactors, account))
            let proof = FactorProof(
                account: account, calls: calls, input: SecretInput(interruption: interruption),
                descriptor: codeDescriptor, credentialDescriptor: credentialDescriptor, isJSON: json.isWanted)
            let answer = try proof.give(try choose(among: factors), channel: channel?.rawValue)
            if json.isWanted { return Output.json(answer) }
            let level = answer["aal"]?.string.map { ", level \(Sanitizer.line($0))" } ?? ""
            Output.line("Verified: \(account)\(level)")
        }
    }

    /// The one that is named; else the only verified one, else the only one.
    private func choose(among factors: [Factor]) throws(RingbackError) -> Factor {
        if let factor {
            guard let known = factors.first(where: { $0.id == factor }) else {
                throw RingbackError(
                    "not_found",
                    "\(account) has no factor “\(Sanitizer.line(factor))”. Run: "
                        + "\(shown: "ringback supabase factors \(account)")")
            }
            return known
        }
        let verified = factors.filter(\.isVerified)
        let choice = verified.isEmpty ? factors : verified
        guard choice.count == 1, let only = choice.first else {
            throw RingbackError(
                "not_found",
                choice.isEmpty
                    ? "\(account) has no second factor. To add one: \(shown: "ringback supabase enroll \(account)")"
                    : "\(account) has \(choice.count) factors: name one. Run: "
                        + "\(shown: "ringback supabase factors \(account)")")
        }
        return only
    }
}
