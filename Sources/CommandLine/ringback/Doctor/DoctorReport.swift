import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// The doctor's checks: one line each, with what is wrong and what command helps.
struct DoctorReport {
    enum Level: String {
        case ok, warning, wrong

        var style: Style {
            switch self {
            case .ok: .green
            case .warning: .yellow
            case .wrong: .red
            }
        }
    }

    struct Line {
        var check: String
        /// The account or scheme that it is about.
        var subject: (kind: String, name: String)?
        var level: Level
        var message: String
        var command: ShownCommand?
    }

    private(set) var lines: [Line] = []

    var isHealthy: Bool { !lines.contains { $0.level == .wrong } }

    mutating func add(_ line: Line) { lines.append(line) }

    mutating func add(_ check: String, _ level: Level, _ message: String, command: ShownCommand? = nil) {
        add(Line(check: check, level: level, message: message, command: command))
    }

    /// A check that passed is replaced by what was found later.
    mutating func correct(_ check: String, _ level: Level, _ message: String, command: ShownCommand) {
        guard let index = lines.firstIndex(where: { $0.check == check && $0.level == .ok }) else { return }
        lines[index] = Line(check: check, level: level, message: message, command: command)
    }

    /// Adds a check of the daemon's. A level that only a newer daemon knows counts as wrong.
    mutating func add(reading json: JSON) {
        guard let check = json["check"]?.string, let message = json["message"]?.string else { return }
        let account = json["account"]?.string
        add(
            Line(
                check: check, subject: account.map { ("account", $0) },
                level: json["level"]?.string.flatMap(Level.init) ?? .wrong, message: message,
                command: json.object.flatMap { AccountRegistration.repetition(of: account ?? "", $0) }
                    ?? json.object.flatMap(CauseAdvice.remedy)
                    ?? json.object?.cause.flatMap {
                        DoctorReport.command(
                            for: $0, account, check: check, setting: json["setting"]?.string,
                            scope: json["scope"]?.string, DoctorReport.request(json))
                    }))
    }

    /// The command that corrects what the daemon found, or shows more about it.
    private static func command(
        for cause: ProblemCause, _ account: String?, check: String, setting: String?, scope: String?,
        _ request: ShownCommand?
    ) -> ShownCommand? {
        let isOfAccount = account != nil
        let account = account.flatMap { RequestTarget.isAccountName($0) ? $0 : nil } ?? "ACCOUNT"
        return switch cause {
        // The provider responds, and a setting of the account is wrong.
        case .badResponse where setting != nil: ShownCommand("ringback account edit \(account)")
        case .wrongScheme where isOfAccount: ShownCommand("ringback account edit \(account)")
        case .unreachable, .untrusted, .wrongScheme, .badResponse: request
        case .configuration where isOfAccount && setting != nil: ShownCommand("ringback account edit \(account)")
        case .clientRefused: ShownCommand("ringback account edit \(account)")
        case .configuration, .schemeNotReserved: "ringback config check"
        case .clockDiffers: "timedatectl set-ntp true"
        case .callbackIsPasted: "ringback complete"
        case .portTaken: "ss -ltnp"
        case .sessionStale: ShownCommand("ringback refresh \(account)")
        case .signInNeeded where scope != nil: ShownCommand("ringback login \(account) --scopes=\(scope ?? "")")
        // The session that is held has nothing wrong, but its tokens are of no use to the server.
        case .signInNeeded where ["discovery", "client", "provider"].contains(check):
            ShownCommand("ringback login \(account) --again")
        case .signInNeeded: ShownCommand("ringback login \(account)")
        case .vaultLocked: "ringback unlock"
        case .keySourceDiffers: "ringback status"
        case .notJoined, .noHostsKey: "ringback vault join"
        case .vaultInMemory: "systemctl --user restart ringback.service"
        case .notExposed: "ringback expose list"
        case .fileNotKept: "ringback files"
        default: nil
        }
    }

    /// The command that sends the same request as the daemon did: through the same proxy, with the same certificates.
    private static func request(_ check: JSON) -> ShownCommand? {
        guard let url = check["url"]?.string else { return nil }
        var words = ["curl", "-v"]
        if let proxy = check["proxy"]?.string {
            words += proxy == "none" ? ["--noproxy", "*"] : ["--proxy", proxy]
        }
        if let file = check["ca_file"]?.string { words += ["--cacert", file] }
        return ShownCommand(words: words + [url])
    }

    // MARK: Showing

    func show(asJSON: Bool) {
        guard !asJSON else { return Output.json(json) }
        for line in lines {
            let subject = line.subject.map { " \(Sanitizer.line($0.name, limit: 64))" } ?? ""
            let padding = String(repeating: " ", count: 9 - line.level.rawValue.utf8.count)
            let level = line.level.rawValue
            let text = TextWrap.wrapped(
                "\(level)\(padding)\(Sanitizer.line(line.check))\(subject): "
                    + Sanitizer.line(line.message, limit: 500),
                columns: Console.Stream.output.columns, indent: 9)
            Output.line(line.level.style.apply(level, on: .output) + text.dropFirst(level.count))
            if let command = line.command {
                Output.line("         → \(Style.bold.apply(command.description, on: .output))")
            }
        }
        Output.line(summary)
    }

    private var summary: String {
        let wrong = lines.count { $0.level == .wrong }
        let warnings = lines.count { $0.level == .warning }
        let tail = warnings == 0 ? "" : warnings == 1 ? " 1 warning." : " \(warnings) warnings."
        switch wrong {
        case 0: return "Nothing is wrong.\(tail)"
        case 1: return "1 thing is wrong.\(tail)"
        default: return "\(wrong) things are wrong.\(tail)"
        }
    }

    private var json: JSON {
        let checks = lines.map { line -> JSON in
            var object = JSONObject([.init("check", .string(line.check))])
            if let subject = line.subject { object[subject.kind] = .string(subject.name) }
            object["level"] = .string(line.level.rawValue)
            object["message"] = .string(line.message)
            object["command"] = line.command.map { .string($0.description) }
            return .object(object)
        }
        return ["healthy": .bool(isHealthy), "checks": .array(checks)]
    }
}
