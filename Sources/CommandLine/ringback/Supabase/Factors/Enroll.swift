import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct SupabaseEnroll: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "enroll", abstract: "Add a second factor: an authenticator app, a phone, or a security key.",
        discussion: """
            The QR code for the app and the secret to type are shown on standard error; anyone who sees them can make \
            the codes. Then the first code is asked for; the factor is active once it was right. For a security key \
            (WebAuthn) the options of navigator.credentials.create() are printed as JSON on one line, and the \
            credential that an app or a web page has made is read as JSON: this program has no authenticator of its own.
            """)

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @Option(help: ArgumentHelp("A phone that gets codes, instead of an app.", valueName: "number"))
    var phone: String?

    @Flag(name: .customLong("webauthn"), help: "A security key or passkey, used through an app or a web page.")
    var isWebAuthn = false

    @Option(help: "How the codes are sent to the phone.")
    var channel: SignInOptions.Channel?

    @Option(help: "The name of the factor.")
    var name: String?

    @Flag(help: "Show only the secret, no QR code.")
    var noQr = false

    @Flag(help: "Ask for no code or credential: “supabase verify-factor” verifies it later.")
    var noVerify = false

    @Option(name: .customLong("code-fd"), help: SignInOptions.descriptor("the first code"))
    var codeDescriptor: Int32?

    @Option(name: .customLong("credential-fd"), help: SignInOptions.descriptor("the credential, as JSON,"))
    var credentialDescriptor: Int32?

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard channel == nil || phone != nil else { throw ValidationError("--channel belongs to --phone.") }
        guard !noVerify || codeDescriptor == nil && credentialDescriptor == nil else {
            let name = codeDescriptor == nil ? "--credential-fd" : "--code-fd"
            throw ValidationError("--no-verify and \(name) exclude each other.")
        }
        guard !isWebAuthn || phone == nil else { throw ValidationError("--webauthn and --phone exclude each other.") }
        guard !isWebAuthn || codeDescriptor == nil else { throw ValidationError("--webauthn has no code.") }
        guard isWebAuthn || credentialDescriptor == nil else {
            throw ValidationError("--credential-fd belongs to --webauthn.")
        }
        try SignInOptions.check([codeDescriptor, credentialDescriptor])
    }

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let interruption = try Signals.interruption()
            let calls = try daemon.calls()
            let document = try calls.project(.enrollFactor, account, body: body)
            let enrolment = try FactorEnrolment(reading: document)
            if json.isWanted { Output.json(document) } else { show(enrolment) }
            let id = Sanitizer.line(enrolment.factor.id)
            let verify = ShownCommand("ringback supabase verify-factor \(account) \(id)")
            guard !noVerify else {
                if !json.isWanted { Output.line("Added \(id) to \(account)") }
                return Output.note("Then verify the factor: \(shown: verify)")
            }
            let proof = FactorProof(
                account: account, calls: calls, input: SecretInput(interruption: interruption),
                descriptor: codeDescriptor, credentialDescriptor: credentialDescriptor, isJSON: json.isWanted)
            do throws(RingbackError) {
                let answer = try proof.give(enrolment.factor, channel: channel?.rawValue)
                if json.isWanted { Output.json(answer) } else { Output.line("Added and verified \(id) of \(account)") }
            } catch {
                Output.note("The factor waits to be verified: \(shown: verify)")
                throw error
            }
        }
    }

    private var body: JSONObject {
        let kind = isWebAuthn ? "webauthn" : phone == nil ? "totp" : "phone"
        var body = JSONObject([.init("factor_type", .string(kind))])
        body["phone"] = phone.map { .string($0) }
        body["friendly_name"] = name.map { .string($0) }
        return body
    }

    private func show(_ enrolment: FactorEnrolment) {
        guard let uri = enrolment.uri else { return }
        let typed = enrolment.secret.map { "To type it instead:  \(Sanitizer.line($0))" }
        let others = typed.map { [$0] } ?? []
        if noQr || !QRDisplay.show(uri, after: "Read this with the authenticator app:", beside: others) {
            Output.note("For the authenticator app:  \(Sanitizer.line(uri, limit: 2_000))")
        }
        if let typed { Output.note(typed) }
    }
}
