import ArgumentParser
import Confinement
import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct Failure {
    let error: RingbackError
    let account: String?

    func show() { for line in lines { Output.note(line) } }

    private var members: JSONObject { error.problem?.extensions ?? JSONObject() }

    /// A restricted socket is used: what helps has to be done where its daemon runs.
    private var isElsewhere: Bool { members["exposed_socket"] != nil }

    var lines: [String] {
        let text = said
        let subject = account.map { Sanitizer.line($0) }
        var lines = ["ringback: " + (subject.map { text.contains($0) ? text : "\($0): \(text)" } ?? text)]
        // For an expired flow the detail says more than the message for the user.
        if let message = error.userMessage, message != error.detail, ![.flowExpired, .wrongCode].contains(error.kind),
            !hasExactWait
        {
            lines.append(Sanitizer.line(message))
        }
        lines += Failure.mistakes(members["errors"])
        if error.advice == nil, let step = nextStep { lines.append(step) }
        return lines
    }

    /// The provider has said how long to wait, and ``nextStep`` repeats it. The message for the user is vaguer.
    private var hasExactWait: Bool {
        error.kind == .rateLimited && error.retryAfter != nil && members["provider_code"] != nil
    }

    /// The account whose settings and provider the error is about. A sign-in may need that of another account.
    private var culprit: String? {
        (members["account"]?.string ?? account).flatMap { RequestTarget.isAccountName($0) ? $0 : nil }
    }

    private var said: String {
        // The project's words for a wrong code are about tokens.
        let isWrongCode = error.kind == .wrongCode
        let detail = Sanitizer.line(isWrongCode ? error.userMessage ?? error.detail : error.detail, limit: 1_000)
        guard let advice = error.advice else { return detail }
        let isSentence = detail.last.map { ".!?”".contains($0) } ?? true
        // A command in it must not be cut.
        return detail + (isSentence ? " " : ". ") + Sanitizer.line(advice, limit: 16_384)
    }

    var nextStep: String? {
        switch error.kind {
        // There is no path for a socket.
        case .noDaemon where error.recovery == .fixConfiguration:
            return SocketPlace.hasSystemd ? "To let your user linger, run: loginctl enable-linger" : nil
        case .noDaemon where Wall.lacksSocket:
            return "This command was started without an account. Start it with one, outside: "
                + "\(shown: Wall.withAccount)"
        case .noDaemon: return Failure.start
        case "port_in_use":
            guard let port = members["port"]?.integer else { return nil }
            return "See which program it is: ss -ltnp 'sport = :\(port)'. End it, or take another port "
                + "(redirect_uri in the configuration, or --callback-port)."
        case .shuttingDown: return "Try again when the daemon is back."
        // These last until a setting or the proxy is changed.
        case .providerUnreachable where [.proxyFailed, .untrusted, .wrongScheme].contains(members.cause):
            return culprit.map { "Run: \(shown: "ringback doctor \($0)")" }
        case .invalidConfiguration where members["credential"]?.string != nil:
            let name = Sanitizer.line(members["credential"]?.string ?? "")
            return "Start the daemon with --credential-fd \(name)=N, or as a unit with LoadCredential=\(name):PATH."
        // Where an exposed socket is used, nothing of the vault is shown.
        case .vaultUnreachable where !isElsewhere:
            let time = error.retryAfter.map { "in \(TimeText.span($0))" } ?? "later"
            return "Try again \(time). To see what the vault lacks, run: ringback vault status"
        case .rateLimited, .providerUnreachable, .vaultUnreachable:
            // The message for the user says already that one may try again.
            return error.retryAfter.map { "Try again in \(TimeText.span($0))." }
                ?? (error.userMessage == nil ? "Try again later." : nil)
        default: break
        }
        if !isElsewhere, let sentence = CauseAdvice.sentence(members) { return sentence }
        if !isElsewhere, let culprit, let command = AccountRegistration.repetition(of: culprit, members) {
            return "Run: \(shown: command)"
        }
        // The error names a setting of the account.
        if error.kind == .providerError, !isElsewhere, members["setting"] != nil, let culprit {
            return "To change it: \(shown: "ringback account edit \(culprit)")"
        }
        guard let command else { return nil }
        // A provider that refuses the client or its redirect URI says so on its page, and sends no callback.
        if error.kind == .flowExpired, let account, loginCommand != nil {
            return "Run: \(shown: command) (or, if the page showed an error: \(shown: "ringback doctor \(account)"))"
        }
        // Where an exposed socket is used, these commands have no effect.
        return isElsewhere ? "\(Elsewhere.place) \(shown: command)" : "Run: \(shown: command)"
    }

    var command: ShownCommand? {
        switch error.kind {
        case .accountNotFound: return isElsewhere ? nil : "ringback accounts"
        case .vaultLocked: return "ringback unlock"
        case "internal_error": return isElsewhere ? "ringback doctor" : nil
        case .invalidConfiguration:
            guard !isElsewhere else { return "ringback doctor" }
            // Neither an assertion's file nor a checked draft is in a file of the configuration.
            if members["setting"] == "assertion_file" || members["draft"] == true { return nil }
            // A mistake in the files has its place; anything else was found when the account was used.
            guard members["errors"] == nil, let culprit else { return "ringback config check" }
            return ShownCommand("ringback doctor \(culprit)")
        default: return loginCommand
        }
    }

    private var loginCommand: ShownCommand? {
        let name = account ?? members["account"]?.string
        guard error.recovery == .signIn, let name, RequestTarget.isAccountName(name) else { return nil }
        guard let params = members["params"]?.object else { return ShownCommand("ringback login \(name)") }
        let wanted = params.members.map { "--param=\($0.name)=\($0.value.string ?? "")" }
        return ShownCommand(words: ["ringback", "login", name, "--again"] + wanted)
    }

    /// A socket that was named may be forwarded from another machine.
    private static var start: String {
        let start =
            Tool.systemctl("show", "--property=Version")?.status == 0
            ? "Start it: systemctl --user start ringback.service (or run ringbackd)" : "Start it: ringbackd &"
        guard SocketPlace.variable("RINGBACK_SOCK")?.isEmpty == false else { return start }
        return start + "; if RINGBACK_SOCK names a socket of another machine or of a container's host, connect it anew."
    }

    /// `file:line: key: message` for each mistake of a configuration, with the command that helps.
    static func mistakes(_ errors: JSON?) -> [String] {
        (errors?.array ?? []).map { entry in
            let line = entry["line"]?.integer.map { ":\($0)" } ?? ""
            let key = entry["key"]?.string.map { $0.isEmpty ? "" : "\($0): " } ?? ""
            let option = entry["place"]?.string.map { $0.isEmpty ? "account: " : "\($0): " }
            let place = option ?? "\(entry["file"]?.string ?? "configuration")\(line): \(key)"
            let command = command(for: entry).map { ": \(shown: $0)" } ?? ""
            return Sanitizer.line("\(place)\(entry.text("message"))", limit: 600) + command
        }
    }

    private static func command(for mistake: JSON) -> ShownCommand? {
        guard let members = mistake.object else { return nil }
        if members.cause == .nameTaken, let socket = members["socket"]?.string, RequestTarget.isAccountName(socket) {
            return ShownCommand("ringback expose revoke \(socket)")
        }
        return CauseAdvice.remedy(members)
    }
}

extension RingbackError {
    init(_ kind: Kind, _ detail: String, recovery: Recovery = .none, advice: String?) {
        self.init(kind, detail, recovery: recovery)
        self.advice = advice
    }

    subscript(member: String) -> JSON? { problem?.extensions[member] }

    func with(detail: String? = nil, advice: String? = nil) -> RingbackError {
        var error = self
        if let detail { error.detail = detail }
        if let advice { error.advice = advice }
        return error
    }

    func adding(_ sentence: String) -> RingbackError {
        with(advice: advice.map { "\($0) \(sentence)" } ?? sentence)
    }
}

extension Wall {
    /// This process is confined and was given no socket of Ringback. No daemon can be started here.
    static var lacksSocket: Bool {
        Files.exists(ringback) && SocketPlace.variable("RINGBACK_SOCK")?.isEmpty != false
    }

    static let withAccount: ShownCommand = "ringback run --account ACCOUNT -- COMMAND"
}

/// A failure of the call becomes what `explain` makes of it.
func explaining<Value>(
    _ call: @autoclosure () throws(RingbackError) -> Value, _ explain: (RingbackError) -> RingbackError
) throws(RingbackError) -> Value {
    do throws(RingbackError) {
        return try call()
    } catch {
        throw explain(error)
    }
}

/// A failure of one of the kinds gets a sentence of advice.
func advising<Value>(
    _ sentence: String, on kinds: RingbackError.Kind..., call: @autoclosure () throws(RingbackError) -> Value
) throws(RingbackError) -> Value {
    try explaining(try call()) { kinds.contains($0.kind) ? $0.adding(sentence) : $0 }
}

/// Nil for a failure of one of the kinds.
func ignoring<Value>(
    _ kinds: RingbackError.Kind..., call: @autoclosure () throws(RingbackError) -> Value
) throws(RingbackError) -> Value? {
    do throws(RingbackError) {
        return try call()
    } catch {
        guard kinds.contains(error.kind) else { throw error }
        return nil
    }
}

func require(_ isMet: Bool, _ sentence: @autoclosure () -> String) throws {
    guard isMet else { throw ValidationError(sentence()) }
}

/// What to type about a problem, by its `cause` and the members that go with it.
enum CauseAdvice {
    static func sentence(_ members: JSONObject) -> String? {
        if let command = remedy(members) { return "Run: \(shown: command)" }
        guard let cause = members.cause else { return nil }
        let name = members["account"]?.string.flatMap { RequestTarget.isAccountName($0) ? $0 : nil } ?? "ACCOUNT"
        switch cause {
        case .signInPending: return "Finish it, or run: \(shown: "ringback cancel \(name)")"
        case .migrationPending: return "When they are moved, run: \(shown: "ringback migrate-user \(name) --done")"
        case .tokenBound: return BoundToken.advice(name)
        case .keySourceDiffers: return keySource(members)
        case .notJoined: return "Run: ringback vault join"
        case .noHostsKey: return "Run ringback vault join here, and on a host that has the key what it says."
        default: return nil
        }
    }

    static func remedy(_ members: JSONObject) -> ShownCommand? {
        guard let path = members["path"]?.string else { return nil }
        return members.cause.flatMap { PathTrouble(rawValue: $0.rawValue) }?.command(for: path, user: geteuid())
    }

    /// The vault's key is kept by another source than the configured one. A passphrase must be given before its key can
    /// be moved, and the daemon asks for it only while it is the configured source.
    private static func keySource(_ members: JSONObject) -> String? {
        guard let recorded = members["key_source"]?.string.map({ Sanitizer.line($0) }),
            let configured = members["other_key_source"]?.string.map({ Sanitizer.line($0) })
        else { return nil }
        let move = ShownCommand("ringback vault rekey --key-source=\(configured)")
        return recorded == "passphrase"
            ? "To move it, set key_source = \"passphrase\", start the daemon anew, run ringback unlock and \(shown: move), and "
                + "set key_source back."
            : "To move it, run: \(shown: move); or set key_source to \"\(recorded)\" or \"auto\" and start the daemon anew."
    }
}

extension JSONObject {
    /// What is wrong; nil if the document does not say, or says it with a word that only a newer daemon knows.
    var cause: ProblemCause? { self["cause"]?.string.flatMap(ProblemCause.init) }
}

enum UnknownAccount {
    static func text(_ name: String, known: [String]) -> String {
        let meant = NearestWord.find(for: name, among: known).map { " Did you mean \(Sanitizer.line($0))?" } ?? ""
        let names = known.map { Sanitizer.line($0) }.joined(separator: ", ")
        let list = known.isEmpty ? "None is configured." : "Known: \(names)."
        return "There is no account “\(Sanitizer.line(name))”.\(meant) \(list)"
    }

    static func error(_ name: String, in report: JSON?) -> RingbackError {
        RingbackError(.accountNotFound, text(name, known: report?.names("accounts") ?? []))
    }
}
