import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct ShowSession: DaemonVerb, AccountNaming {
    static let configuration = CommandConfiguration(
        commandName: "session", abstract: "Show an account's session: its user, scope and expiry.",
        discussion: """
            No token is shown unless --show-token asks for it; `ringback token` prints the access token. Without ACCOUNT \
            it is the only account, else the default account (see ringback use).
            """)

    @Argument(help: "The account.", completion: Completions.accounts) var account: String?
    @OptionGroup var choice: SessionOptions

    @Option(
        help: .value(
            "words", "Additional members, comma-separated: profile; with --show-token also id_token, provider_token."))
    var include: String?

    @Flag(help: "Include the tokens in the JSON form.") var showToken = false
    @OptionGroup var options: CallOptions

    private static let tokens = ["access_token", "id_token", "provider_token"]

    func validate() throws {
        try require(!showToken || json.isWanted, "--show-token belongs to --json.")
        let words = include?.split(separator: ",").map(String.init) ?? []
        let word = words.first(where: ShowSession.tokens.contains)
        try require(showToken || word == nil, "--include \(word ?? "") needs --json and --show-token.")
    }

    private func withoutTokens(_ answer: JSON) -> JSON {
        guard !showToken, var object = answer.object else { return answer }
        for name in ShowSession.tokens { object[name] = nil }
        return .object(object)
    }

    mutating func run() throws {
        let name = try AccountChoice.name(account, for: "session", daemon)
        account = name
        var request = choice.request(name)
        request.include = "user" + (include.map { ",\($0)" } ?? "")
        let answer = try daemon.calls().session(request)
        TokenVerb.warn(of: answer["scope"]?.string, askedFor: request.scope)
        guard !json.isWanted else { return Output.json(withoutTokens(answer)) }
        let session = try Session(reading: answer)
        let validity = TimeText.phrase(until: session.expiresAt?.secondsSince1970, now: TimeText.now())
        Output.fields([
            "Account": session.account.isEmpty ? name : session.account, "Subject": session.subject,
            "Name": session.user?.name, "E-mail": session.user?.email, "Phone": session.user?.phone,
            "Level": Assurance.text(session.assurance, session.nextAssurance),
            "Profile": answer["profile_status"]?.string, "Issuer": session.issuer, "Scope": session.scope,
            "Token": "\(session.tokenType), \(validity)",
        ])
    }
}

struct TokenLimits: ParsableArguments {
    @Option(help: "A token downscoped to these scopes, space-separated.") var scope: String?
    @Option(help: "A token for this audience.") var audience: String?
    @Option(help: "A token for this resource (RFC 8707).") var resource: String?
}

/// Which token of a session is meant, on every verb that gets one.
struct SessionOptions: ParsableArguments {
    @Option(help: .value("seconds", "Seconds the token must still be valid.")) var minValid: Int?
    @Option(help: .value("seconds", "Seconds to wait at most.")) var timeout: Int?
    @OptionGroup var limits: TokenLimits
    @Option(help: "Fail if the session has another subject.") var subject: String?

    func validate() throws {
        try require((minValid ?? 0) >= 0 && (timeout ?? 0) >= 0, "Seconds must be 0 or more.")
    }

    /// None was given.
    var isEmpty: Bool {
        minValid == nil && timeout == nil && subject == nil && limits.scope == nil && limits.audience == nil
            && limits.resource == nil
    }

    func request(_ account: String?) -> SessionRequest {
        var request = SessionRequest(account: account)
        request.minValid = minValid
        request.timeout = timeout
        request.scope = limits.scope
        request.audience = limits.audience
        request.resource = limits.resource
        request.subject = subject
        return request
    }
}

struct Refresh: DaemonVerb, AccountNaming {
    static let configuration = CommandConfiguration(
        abstract: "Renew an account's tokens now.",
        discussion: "Without ACCOUNT it is the only account, else the default account (see ringback use).")

    @Argument(help: "The account.", completion: Completions.accounts) var account: String?
    @Flag(help: "Refresh even if a refresh has just ended.") var force = false
    @OptionGroup var options: CallOptions

    mutating func run() throws {
        let name = try AccountChoice.name(account, for: "refresh", daemon)
        account = name
        let answer = try daemon.calls().call(.refresh, [name], body: force ? ["force": true] : [:])
        let validity = TimeText.phrase(until: answer["expires_at"]?.integer, now: TimeText.now())
        json.print(answer, or: "Refreshed \(name), token \(validity)")
    }
}

struct ShowFiles: DaemonVerb {
    static let configuration = CommandConfiguration(
        commandName: "files", abstract: "List the files in which the daemon keeps tokens.",
        discussion: "Exit status 1: one of them has a problem.")

    @OptionGroup var options: CallOptions

    func run() throws {
        let answer = try daemon.calls().call(.listKeptFiles)
        try json.printList(
            answer, "files", ["FILE", "ACCOUNT", "FORMAT", "STATE", "VALID"],
            none: "No files are kept. The configuration has no table [[file]]."
        ) { file in
            let end = file["expires_at"]?.integer
            let isKept = file["state"]?.string == "kept"
            return [
                file.text("path"), file.text("account"), file.text("format"),
                file.text("state").replacing("_", with: " "),
                isKept ? TimeText.validity(until: end, now: TimeText.now()) : "",
            ]
        }
        let problems = answer.list("files").filter { $0["detail"]?.string != nil }
        if !json.isWanted { for file in problems { Output.note(file.shown("detail")) } }
        if !problems.isEmpty { throw ExitCode(ExitStatus.failed) }
    }
}
