import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct ShowSession: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "session", abstract: "Show an account's session: its user, scope and expiry.",
        discussion: """
            No token is shown unless --show-token asks for it; `ringback token` prints the access token. Without ACCOUNT \
            it is the only account, else the default account (see ringback use).
            """)

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String?

    @OptionGroup var choice: SessionOptions

    @Option(
        help: ArgumentHelp(
            "Additional members, comma-separated: profile; with --show-token also id_token, provider_token.",
            valueName: "words"))
    var include: String?

    @Flag(help: "Include the tokens in the JSON form.")
    var showToken = false

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    /// The members that hold tokens.
    private static let tokens = ["access_token", "id_token", "provider_token"]

    func validate() throws {
        guard !showToken || json.isWanted else { throw ValidationError("--show-token belongs to --json.") }
        let words = include?.split(separator: ",").map(String.init) ?? []
        if let word = words.first(where: ShowSession.tokens.contains), !showToken {
            throw ValidationError("--include \(word) needs --json and --show-token.")
        }
    }

    private func withoutTokens(_ answer: JSON) -> JSON {
        guard !showToken, var object = answer.object else { return answer }
        for name in ShowSession.tokens { object[name] = nil }
        return .object(object)
    }

    func run() throws {
        let account = try AccountChoice.name(account, for: "session", daemon)
        try present(account: account) { () throws(RingbackError) in
            var request = choice.request(account)
            request.include = "user" + (include.map { ",\($0)" } ?? "")
            let answer = try daemon.calls().session(request)
            TokenVerb.warn(of: answer["scope"]?.string, askedFor: request.scope)
            guard !json.isWanted else { return Output.json(withoutTokens(answer)) }
            let session = try Session(reading: answer)
            Output.field("Account", session.account.isEmpty ? account : session.account)
            Output.field("Subject", session.subject)
            Output.field("Name", session.user?.name)
            Output.field("E-mail", session.user?.email)
            Output.field("Phone", session.user?.phone)
            Output.field("Level", Assurance.text(session.assurance, session.nextAssurance))
            Output.field("Profile", answer["profile_status"]?.string)
            Output.field("Issuer", session.issuer)
            Output.field("Scope", session.scope)
            let validity = TimeText.phrase(until: session.expiresAt?.secondsSince1970, now: TimeText.now())
            Output.field("Token", "\(session.tokenType), \(validity)")
        }
    }
}

/// Which token of a session is meant, on every verb that gets one.
struct SessionOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Seconds the token must still be valid.", valueName: "seconds"))
    var minValid: Int?

    @Option(help: ArgumentHelp("Seconds to wait at most.", valueName: "seconds"))
    var timeout: Int?

    @Option(help: "A token downscoped to these scopes, space-separated.")
    var scope: String?

    @Option(help: "A token for this audience.")
    var audience: String?

    @Option(help: "A token for this resource (RFC 8707).")
    var resource: String?

    @Option(help: "Fail if the session has another subject.")
    var subject: String?

    func validate() throws {
        for seconds in [minValid, timeout] where (seconds ?? 0) < 0 {
            throw ValidationError("Seconds must be 0 or more.")
        }
    }

    /// - Parameter account: nil where something else names the session.
    func request(_ account: String?) -> SessionRequest {
        var request = SessionRequest(account: account)
        request.minValid = minValid
        request.timeout = timeout
        request.scope = scope
        request.audience = audience
        request.resource = resource
        request.subject = subject
        return request
    }
}

struct Refresh: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Renew an account's tokens now.",
        discussion: "Without ACCOUNT it is the only account, else the default account (see ringback use).")

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String?

    @Flag(help: "Refresh even if a refresh has just ended.")
    var force = false

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        let account = try AccountChoice.name(account, for: "refresh", daemon)
        try present(account: account) { () throws(RingbackError) in
            let answer = try daemon.calls().call(
                .refresh, [account], body: force ? ["force": true] : [:])
            guard !json.isWanted else { return Output.json(answer) }
            let validity = TimeText.phrase(until: answer["expires_at"]?.integer, now: TimeText.now())
            Output.line("Refreshed \(account), token \(validity)")
        }
    }
}

struct ShowFiles: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "files", abstract: "List the files in which the daemon keeps tokens.",
        discussion: "Exit status 1: one of them has a problem.")

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        var hasProblem = false
        try present { () throws(RingbackError) in
            let answer = try daemon.calls().call(.listKeptFiles)
            let files = answer["files"]?.array ?? []
            hasProblem = files.contains { $0["detail"]?.string != nil }
            guard !json.isWanted else { return Output.json(answer) }
            guard !files.isEmpty else {
                return Output.note("No files are kept. The configuration has no table [[file]].")
            }
            var table = Table(columns: ["FILE", "ACCOUNT", "FORMAT", "STATE", "VALID"])
            for file in files {
                let end = file["expires_at"]?.integer
                let isKept = file["state"]?.string == "kept"
                table.add([
                    file["path"]?.string ?? "", file["account"]?.string ?? "", file["format"]?.string ?? "",
                    (file["state"]?.string ?? "").replacing("_", with: " "),
                    isKept ? TimeText.validity(until: end, now: TimeText.now()) : "",
                ])
            }
            Output.table(table)
            for file in files {
                guard let detail = file["detail"]?.string else { continue }
                Output.note(Sanitizer.line(detail, limit: 4_000))
            }
        }
        if hasProblem { throw ExitCode(ExitStatus.failed) }
    }
}
