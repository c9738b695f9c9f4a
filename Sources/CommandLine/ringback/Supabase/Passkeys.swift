import ArgumentParser
import RingbackBase
import RingbackClient
import Terminal

struct SupabasePasskeys: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "passkeys", abstract: "List the user's passkeys.")

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let answer = try daemon.calls().passkeys(account)
            guard !json.isWanted else { return Output.json(answer) }
            let entries = answer["passkeys"]?.array ?? []
            guard !entries.isEmpty else {
                return Output.note(
                    "There is no passkey. To add one: \(shown: "ringback supabase register-passkey \(account)")")
            }
            var table = Table(columns: ["NAME", "SINCE", "LAST USED", "ID"])
            for entry in entries {
                let passkey = try Passkey(reading: entry)
                let times = [passkey.createdAt, passkey.lastUsedAt].map { time in
                    time.map { TimeText.dateAndTime($0.secondsSince1970) } ?? "-"
                }
                table.add([passkey.name ?? "-"] + times + [passkey.id])
            }
            Output.table(table)
        }
    }
}

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

struct SupabaseRenamePasskey: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "rename-passkey", abstract: "Rename a passkey.")

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @Argument(help: ArgumentHelp("The passkey, as “supabase passkeys” shows it.", valueName: "id"))
    var passkey: String

    @Argument(help: "Its name, 1 to 120 bytes.")
    var name: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard (1...120).contains(name.utf8.count) else { throw ValidationError("A name has 1 to 120 bytes.") }
    }

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let answer: JSON
            do throws(RingbackError) {
                answer = try daemon.calls().renamePasskey(account, passkey, to: name)
            } catch {
                throw IdentifierHint.explained(error, see: ShownCommand("ringback supabase passkeys \(account)"))
            }
            guard !json.isWanted else { return Output.json(answer) }
            let known = try Passkey(reading: answer)
            Output.line("\(Sanitizer.line(known.id)) is \(Sanitizer.line(known.name ?? name)) now.")
        }
    }
}

/// Takes an authenticator's response, as JSON. This program has no authenticator: an app or a web page performs
/// the ceremony and passes its result on. Text that is not a JSON object is not sent to the project, which accepts one
/// response only.
struct PasskeyEntry {
    let input: SecretInput
    /// Where it is read; nil for the terminal or standard input.
    let descriptor: Int32?

    /// The socket's own limit for a request, in bytes.
    private static let maxLength = 60_000

    /// True for a flow that a passkey ends.
    static func isAwaited(by flow: Flow) -> Bool { flow.waitingFor == .passkey }

    /// The flow once it is over.
    ///
    /// - Parameter end: the caller's own deadline.
    /// - Throws: `cancelled` after a signal, or where no credential was read.
    func finish(
        _ flow: Flow, _ calls: BrokerCalls, until end: ContinuousClock.Instant?
    ) throws(RingbackError) -> Flow {
        let watch = try FlowWatch(calls, flow: flow.id, until: end)
        defer { watch.stop() }
        let credential = try read("navigator.credentials.get()", orEndedBy: watch.descriptor)
        if let (ended, _) = try watch.outcome { return ended }
        guard let credential else { throw unread }
        // A request that is being sent is not interrupted: its response says what happened.
        var patient = calls
        patient.interruption = nil
        return try patient.verify(flow: flow.id, credential: credential).0
    }

    /// The credential; nil when `other` became readable first, or where there is none.
    ///
    /// - Parameter ceremony: what a page calls with the options.
    func read(_ ceremony: String, orEndedBy other: Int32 = -1) throws(RingbackError) -> JSONObject? {
        let asksUser = SecretInput.asksUser(descriptor)
        if asksUser { Output.note(PasskeyEntry.introduction(ceremony)) }
        var text = ""
        while true {
            let question = text.isEmpty ? "Credential (it is not shown; empty gives up): " : ""
            guard let line = try input.line(question, from: descriptor, orEndedBy: other) else {
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
            guard text.utf8.count <= PasskeyEntry.maxLength else { throw PasskeyEntry.malformed }
        }
    }

    private static func introduction(_ ceremony: String) -> String {
        """
        A passkey or security key is used by an app, or by a page in a browser, at an address that the project has \
        listed: it passes the options above to \(ceremony) and its credential to this program, as JSON. Without such \
        an app or page, use another method.
        """
    }

    /// There was no credential. The advice says how a script gives one.
    var unread: RingbackError {
        var error = RingbackError(.cancelled, "No credential was read.")
        guard !SecretInput.asksUser(descriptor) else { return error }
        error.advice =
            (descriptor ?? 0) == 0
            ? "A credential is JSON on standard input, or on a descriptor (--credential-fd)."
            : "Nothing could be read from descriptor \(descriptor ?? 0). A credential is JSON."
        return error
    }

    private static let malformed = RingbackError(
        "validation_failed", "The input is not a JSON object. PublicKeyCredential.toJSON() returns the credential."
    )
}
