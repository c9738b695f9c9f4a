import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct SupabaseFactors: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "factors", abstract: "List the user's second factors.")

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let calls = try daemon.calls()
            let answer = try calls.project(.listFactors, account)
            guard !json.isWanted else { return Output.json(answer) }
            let factors = try SupabaseFactors.read(answer)
            guard !factors.isEmpty else {
                return Output.note(
                    "There is no second factor. To add one: \(shown: "ringback supabase enroll \(account)")")
            }
            var table = Table(columns: ["TYPE", "NAME", "STATUS", "SINCE", "ID"])
            for factor in factors {
                table.add([
                    factor.kind.rawValue, factor.name ?? factor.phone ?? "-",
                    factor.isVerified ? "verified" : "unverified",
                    factor.createdAt.map { TimeText.dateAndTime($0.secondsSince1970) } ?? "-", factor.id,
                ])
            }
            Output.table(table)
        }
    }

    static func read(_ answer: JSON) throws(RingbackError) -> [Factor] {
        var factors: [Factor] = []
        for json in answer["factors"]?.array ?? [] { factors.append(try Factor(reading: json)) }
        return factors
    }
}

struct SupabaseEnroll: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "enroll", abstract: "Add a second factor: an authenticator app, a phone, or a security key.",
        discussion: """
            The QR code for the app (if qrencode is installed) and the secret to type are shown on standard error; \
            anyone who sees them can make the codes. Then the first code is asked for; the factor is active once it was \
            right. For a security key (WebAuthn) the options of navigator.credentials.create() are printed as JSON on \
            one line, and the credential that an app or a web page has made is read as JSON: this program has no \
            authenticator of its own.
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

/// Verifies a factor by its code (for a phone, one is sent first) or by an authenticator's response. A user at a
/// terminal is asked until the code is right.
struct FactorProof {
    let account: String
    let calls: BrokerCalls
    let input: SecretInput
    /// Where the code is read; nil for the terminal or standard input.
    let descriptor: Int32?
    /// The same for a credential.
    let credentialDescriptor: Int32?
    /// The options of an authenticator are printed as the whole document of the challenge.
    let isJSON: Bool

    /// The account's JSON at its new level.
    ///
    /// - Throws: `cancelled` without a code or a credential; the project's error for a wrong one, if there is no user to
    ///   ask again.
    func give(_ factor: Factor, channel: String?) throws(RingbackError) -> JSON {
        if factor.kind == .webAuthn { return try give(to: factor) }
        guard credentialDescriptor == nil else {
            throw RingbackError(
                "validation_failed",
                "--credential-fd is for a security key; this factor is verified by a code (--code-fd).")
        }
        let isPhone = factor.kind == .phone
        var challenge = isPhone ? try send(factor, channel) : nil
        let question = isPhone ? "code (“resend” sends another)" : "code that the app shows"
        while true {
            let code = try input.read(question, from: descriptor, otherwise: "The factor was not verified.")
            let isAsking = SecretInput.asksUser(descriptor)
            do throws(RingbackError) {
                if isPhone, isAsking, code == "resend" {
                    challenge = try send(factor, channel)
                } else {
                    return try calls.verifyFactor(account, factor.id, code: code, challenge: challenge)
                }
            } catch {
                guard isAsking, FactorProof.canBeMended(error) else { throw error }
                Failure(error, account: account).show()
            }
        }
    }

    /// By a credential: this program has no authenticator, so an app or a page in a browser performs the ceremony.
    private func give(to factor: Factor) throws(RingbackError) -> JSON {
        guard descriptor == nil else {
            throw RingbackError(
                "validation_failed",
                "--code-fd is for a code; this factor is verified by a credential (--credential-fd).")
        }
        let document = try calls.project(.challengeFactor, account, factor.id, body: JSONObject())
        let challenge = try FactorChallenge(reading: document)
        if isJSON { Output.json(document) } else { Output.line(challenge.options) }
        let entry = PasskeyEntry(input: input, descriptor: credentialDescriptor)
        guard let credential = try entry.read("navigator.credentials.\(challenge.makesKey ? "create" : "get")()") else {
            throw entry.unread
        }
        return try calls.verifyFactor(account, factor.id, credential: credential, challenge: challenge.id)
    }

    private func send(_ factor: Factor, _ channel: String?) throws(RingbackError) -> String? {
        var body = JSONObject()
        body["channel"] = channel.map { .string($0) }
        let id = try calls.project(.challengeFactor, account, factor.id, body: body)["id"]?.string
        Output.note("A code was sent to \(Sanitizer.line(factor.phone ?? "the phone")).")
        return id
    }

    /// Errors after which another code, or a short wait, may help.
    private static func canBeMended(_ error: RingbackError) -> Bool {
        [.invalidCredentials, .wrongCode, .validationFailed, .rateLimited, .providerUnreachable, .flowExpired]
            .contains(error.kind)
    }
}
