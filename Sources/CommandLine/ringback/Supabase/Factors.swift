import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct SupabaseEnroll: AccountVerb {
    static let configuration = CommandConfiguration(
        commandName: "enroll", abstract: "Add a second factor: an authenticator app, a phone, or a security key.",
        discussion: """
            The QR code for the app (if qrencode is installed) and the secret to type are shown on standard error; \
            anyone who sees them can make the codes. Then the first code is asked for; the factor is active once it was \
            right. For a security key (WebAuthn) the options of navigator.credentials.create() are printed as JSON on \
            one line, and the credential that an app or a web page has made is read as JSON: this program has no \
            authenticator of its own.
            """)

    @OptionGroup var target: AccountOptions
    @Option(help: .value("number", "A phone that gets codes, instead of an app.")) var phone: String?
    @Flag(help: "A security key or passkey, used through an app or a web page.") var webauthn = false
    @Option(help: "How the codes are sent to the phone.") var channel: SignInOptions.Channel?
    @Option(help: "The name of the factor.") var name: String?
    @Flag(help: "Show only the secret, no QR code.") var noQr = false
    @Flag(help: "Ask for no code or credential: “supabase verify-factor” verifies it later.") var noVerify = false
    @Option(help: .descriptor("the first code")) var codeFD: Int32?
    @Option(help: .descriptor("the credential, as JSON,")) var credentialFD: Int32?

    func validate() throws {
        try require(channel == nil || phone != nil, "--channel belongs to --phone.")
        try SignInOptions.check(phone: phone)
        try require(!noVerify || codeFD == nil, "--no-verify and --code-fd exclude each other.")
        try require(!noVerify || credentialFD == nil, "--no-verify and --credential-fd exclude each other.")
        try require(!webauthn || phone == nil, "--webauthn and --phone exclude each other.")
        try require(!webauthn || codeFD == nil, "--webauthn has no code.")
        try require(webauthn || credentialFD == nil, "--credential-fd belongs to --webauthn.")
        try SignInOptions.check([codeFD, credentialFD])
    }

    func run() throws {
        try Signals.interruption()
        let calls = try daemon.calls()
        let kind = webauthn ? "webauthn" : phone == nil ? "totp" : "phone"
        let body: JSONObject = ["factor_type": kind, "phone": phone, "friendly_name": name]
        let document = try explaining(try calls.project(.enrollFactor, account, body: body), explained)
        let enrolment = try FactorEnrolment(reading: document)
        if json.isWanted { Output.json(document) } else { show(enrolment) }
        let id = Sanitizer.line(enrolment.factor.id)
        let verify = ShownCommand("ringback supabase verify-factor \(account) \(id)")
        guard !noVerify else {
            if !json.isWanted { Output.line("Added \(id) to \(account)") }
            return Output.note("Then verify the factor: \(shown: verify)")
        }
        let proof = FactorProof(
            account: account, calls: calls, descriptor: codeFD, credentialFD: credentialFD, isJSON: json.isWanted)
        do throws(RingbackError) {
            let answer = try proof.give(enrolment.factor, channel: channel?.rawValue)
            json.print(answer, or: "Added and verified \(id) of \(account)")
        } catch {
            Output.note("The factor waits to be verified: \(shown: verify)")
            throw error
        }
    }

    /// A factor that was not verified has its name until it is removed, also the name of those without one.
    private func explained(_ error: RingbackError) -> RingbackError {
        guard error.providerCode == "mfa_factor_name_conflict" else { return error }
        return error.adding(
            "Verify that one if it waits for that (\(shown: "ringback supabase verify-factor \(account)")), remove it "
                + "(\(shown: "ringback supabase remove-factor \(account) FACTOR")), or name the new one: --name NAME")
    }

    private func show(_ enrolment: FactorEnrolment) {
        guard let uri = enrolment.uri else { return }
        let typed = enrolment.secret.map { ["To type it instead:  \(Sanitizer.line($0))"] } ?? []
        if noQr || !QRDisplay.show(uri, after: "Read this with the authenticator app:", beside: typed) {
            Output.note("For the authenticator app:  \(Sanitizer.line(uri, limit: 2_000))")
        }
        typed.forEach { Output.note($0) }
    }
}

struct SupabaseVerifyFactor: AccountVerb {
    static let configuration = CommandConfiguration(
        commandName: "verify-factor", abstract: "Verify a second factor, for a session of the second level.",
        discussion: """
            The code is asked for on the terminal, without echo, until it is right; otherwise it is a line of standard \
            input, or of the named descriptor. For a phone, a code is sent first. For a security key the options of \
            navigator.credentials.get() are printed as JSON on one line, and the credential is read as JSON: this \
            program has no authenticator of its own.
            """)

    @OptionGroup var target: AccountOptions

    @Argument(help: "The factor's id, as “supabase factors” shows it; may be left out if there is only one.")
    var factor: String?

    @Option(help: .descriptor("the code")) var codeFD: Int32?
    @Option(help: .descriptor("the credential, as JSON,")) var credentialFD: Int32?
    @Option(help: "How the code is sent to a phone.") var channel: SignInOptions.Channel?

    func validate() throws { try SignInOptions.check([codeFD, credentialFD]) }

    func run() throws {
        try Signals.interruption()
        let calls = try daemon.calls()
        let factors = try Factor.all(in: calls.project(.listFactors, account))
        let proof = FactorProof(
            account: account, calls: calls, descriptor: codeFD, credentialFD: credentialFD, isJSON: json.isWanted)
        let answer = try proof.give(try choose(among: factors), channel: channel?.rawValue)
        let level = answer["aal"]?.string.map { ", level \(Sanitizer.line($0))" } ?? ""
        json.print(answer, or: "Verified: \(account)\(level)")
    }

    private func choose(among factors: [Factor]) throws(RingbackError) -> Factor {
        let list = Factor.rows.see(account)
        if let factor {
            if let known = factors.first(where: { $0.id == factor }) { return known }
            throw RingbackError(.notFound, "\(account) has no factor “\(Sanitizer.line(factor))”. Run: \(shown: list)")
        }
        let verified = factors.filter(\.isVerified)
        let choice = verified.isEmpty ? factors : verified
        if choice.count == 1 { return choice[0] }
        let enroll: ShownCommand = "ringback supabase enroll \(account)"
        throw RingbackError(
            .notFound,
            choice.isEmpty
                ? "\(account) has no second factor. To add one: \(shown: enroll)"
                : "\(account) has \(choice.count) factors: name one. Run: \(shown: list)")
    }
}

/// Verifies a factor by its code or by an authenticator's response. A user is asked until the code is right.
struct FactorProof {
    let account: String
    let calls: BrokerCalls
    var descriptor: Int32?
    var credentialFD: Int32?
    /// The options of an authenticator are printed as the whole document of the challenge.
    let isJSON: Bool

    /// The account's JSON at its new level.
    ///
    /// - Throws: `cancelled` without a code or a credential; the project's error for a wrong one, if there is no user
    ///   to ask again.
    func give(_ factor: Factor, channel: String?) throws(RingbackError) -> JSON {
        if factor.kind == .webAuthn { return try give(to: factor) }
        guard credentialFD == nil else {
            let detail = "--credential-fd is for a security key; this factor is verified by a code (--code-fd)."
            throw RingbackError(.validationFailed, detail)
        }
        let isPhone = factor.kind == .phone
        var challenge = isPhone ? try send(factor, channel) : nil
        let question = isPhone ? "code (“resend” sends another)" : "code that the app shows"
        while true {
            let code = try SecretInput.read(question, from: descriptor, otherwise: "The factor was not verified.")
            let isAsking = SecretInput.asksUser(descriptor)
            do throws(RingbackError) {
                if isPhone, isAsking, code == "resend" {
                    challenge = try send(factor, channel)
                } else {
                    return try calls.project(
                        .verifyFactor, account, factor.id, body: ["code": code, "challenge_id": challenge])
                }
            } catch {
                guard isAsking, FactorProof.mendable.contains(error.kind) else { throw error }
                Failure(error: error, account: account).show()
            }
        }
    }

    /// This program has no authenticator, so an app or a page in a browser performs the ceremony.
    private func give(to factor: Factor) throws(RingbackError) -> JSON {
        guard descriptor == nil else {
            let detail = "--code-fd is for a code; this factor is verified by a credential (--credential-fd)."
            throw RingbackError(.validationFailed, detail)
        }
        let document = try calls.project(.challengeFactor, account, factor.id, body: JSONObject())
        let challenge = try FactorChallenge(reading: document)
        if isJSON { Output.json(document) } else { Output.line(challenge.options) }
        let entry = PasskeyEntry(descriptor: credentialFD)
        let credential = try entry.read("navigator.credentials.\(challenge.makesKey ? "create" : "get")()")
        return try calls.project(
            .verifyFactor, account, factor.id, body: ["challenge_id": challenge.id, "credential": credential])
    }

    private func send(_ factor: Factor, _ channel: String?) throws(RingbackError) -> String? {
        let id = try calls.project(.challengeFactor, account, factor.id, body: ["channel": channel])["id"]?.string
        Output.note("A code was sent to \(Sanitizer.line(factor.phone ?? "the phone")).")
        return id
    }

    /// Errors after which another code, or a short wait, may help.
    private static let mendable: [RingbackError.Kind] = [
        .invalidCredentials, .wrongCode, .validationFailed, .rateLimited, .providerUnreachable, .flowExpired,
    ]
}

struct SupabaseRegisterPasskey: AccountVerb {
    static let configuration = CommandConfiguration(
        commandName: "register-passkey", abstract: "Add a passkey that an app or a web page makes.",
        discussion: """
            Prints the authenticator's options as JSON on one line, for navigator.credentials.create() or an app's own \
            interface. Its response, PublicKeyCredential.toJSON(), is read from standard input or from the named \
            descriptor. The project accepts one response, within five minutes, from the origins that it lists. This \
            program has no authenticator of its own.
            """)

    @OptionGroup var target: AccountOptions
    @Option(help: .descriptor("the credential, as JSON,")) var credentialFD: Int32?

    func validate() throws { try SignInOptions.check([credentialFD]) }

    func run() throws {
        try Signals.interruption()
        let entry = PasskeyEntry(descriptor: credentialFD)
        let calls = try daemon.calls()
        let challenge = try calls.project(.beginPasskey, account, body: JSONObject())
        let known = try PasskeyChallenge(reading: challenge)
        if json.isWanted { Output.json(challenge) } else { Output.line(known.options) }
        let credential = try entry.read("navigator.credentials.create()")
        let answer = try calls.project(
            .registerPasskey, account, body: ["challenge_id": known.id, "credential": credential])
        guard !json.isWanted else { return Output.json(answer) }
        let id = Sanitizer.line(try Passkey(reading: answer).id)
        Output.line("Added \(id)")
        Output.note("To name it: \(shown: "ringback supabase rename-passkey \(account) \(id) NAME")")
    }
}

/// Takes an authenticator's response, as JSON, which an app or a web page got. Text that is not a JSON object is not
/// sent to the project, which accepts one response only.
struct PasskeyEntry {
    let descriptor: Int32?

    static func isAwaited(by flow: Flow) -> Bool { flow.waitingFor == .passkey }

    func finish(_ flow: Flow, _ calls: BrokerCalls, until end: ContinuousClock.Instant?) throws(RingbackError) -> Flow {
        let watch = try FlowWatch(calls, flow: flow.id, until: end)
        defer { watch.stop() }
        let credential = try read("navigator.credentials.get()", orEndedBy: watch.descriptor)
        if let (ended, _) = try watch.outcome { return ended }
        guard let credential else { throw unread }
        return try calls.patient.verify(flow: flow.id, ["credential": credential]).0
    }

    func read(_ ceremony: String) throws(RingbackError) -> JSONObject {
        guard let credential = try read(ceremony, orEndedBy: -1) else { throw unread }
        return credential
    }

    /// Nil when `other` became readable first, or where there is none.
    private func read(_ ceremony: String, orEndedBy other: Int32) throws(RingbackError) -> JSONObject? {
        let asksUser = SecretInput.asksUser(descriptor)
        if asksUser {
            Output.note(
                """
                A passkey or security key is used by an app, or by a page in a browser, at an address that the project has \
                listed: it passes the options above to \(ceremony) and its credential to this program, as JSON. Without such \
                an app or page, use another method.
                """)
        }
        var text = ""
        while true {
            let question = text.isEmpty ? "Credential (it is not shown; empty gives up): " : ""
            guard let line = try SecretInput.line(question, from: descriptor, orEndedBy: other) else {
                if !text.isEmpty { throw PasskeyEntry.malformed }
                return nil
            }
            if asksUser, text.isEmpty, line.isEmpty { return nil }
            text += line
            let first = text.utf8.first { ![0x20, 0x09].contains($0) }
            if let first, first != UInt8(ascii: "{") {
                guard asksUser else { throw PasskeyEntry.malformed }
                Output.note("ringback: \(PasskeyEntry.malformed.detail)")
                text = ""
            } else if let object = JSONInput.object(text) {
                return object
            }
            // The socket's own limit for a request, in bytes.
            guard text.utf8.count <= 60_000 else { throw PasskeyEntry.malformed }
        }
    }

    /// There was no credential. The advice says how a script gives one.
    private var unread: RingbackError {
        let advice =
            (descriptor ?? 0) == 0
            ? "A credential is JSON on standard input, or on a descriptor (--credential-fd)."
            : "Nothing could be read from descriptor \(descriptor ?? 0). A credential is JSON."
        let isAsking = SecretInput.asksUser(descriptor)
        return RingbackError(.cancelled, "No credential was read.", advice: isAsking ? nil : advice)
    }

    private static let malformed = RingbackError(
        .validationFailed, "The input is not a JSON object. PublicKeyCredential.toJSON() returns the credential.")
}
