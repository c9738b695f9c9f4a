import Adapters
public import ArgumentParser
import RingbackAPI
public import RingbackBase
import RingbackClient
import Terminal

struct TokenOptions {
    var request = SessionRequest(account: nil)
    var socket: String?
    var format = TokenFormat.raw
    var variable = "RINGBACK_TOKEN"
    var origin: OriginRequest?
    var signsIn = false
}

/// Both parsers end here.
enum TokenVerb {
    static func run(_ options: TokenOptions) -> Int32 {
        do throws(RingbackError) {
            Output.line(try options.format.text(try printed(options), variable: options.variable))
            return 0
        } catch {
            Failure(error: error, account: options.request.account).show()
            return ExitStatus.of(error)
        }
    }

    private static func printed(_ options: TokenOptions) throws(RingbackError) -> PrintedToken {
        guard let origin = options.origin else {
            let answer = try answer(options)
            // The JSON says the token's type.
            if options.format != .json { try BoundToken.refuse(answer) }
            return PrintedToken(session: answer, kind: options.request.kind)
        }
        guard let url = try? WebURL(parsing: origin.url), url.host?.isEmpty == false else {
            throw OriginEntry.unusable(origin.url)
        }
        let found = try Daemon.calls(socket: options.socket).lookup(origin)
        if let warning = found.warning { Output.note("ringback: " + Sanitizer.line(warning, limit: 1_000)) }
        return PrintedToken(found, for: url)
    }

    /// Some providers give the whole scope whatever is requested, and say so.
    static func warn(of scope: String?, askedFor asked: String?) {
        guard let scope, let asked else { return }
        let permitted = asked.split(separator: " ").map(String.init)
        let excess = Set(scope.split(separator: " ").map(String.init))
            .filter { !TokenDownscoping.isCovered($0, by: permitted) }.sorted()
        guard !excess.isEmpty else { return }
        let scopes = Sanitizer.line(excess.joined(separator: " "), limit: 1_000)
        Output.note("Warning: the provider gave a token with more scope than was requested: \(scopes).")
    }

    static func answer(_ options: TokenOptions) throws(RingbackError) -> JSON {
        let answer = try session(options)
        warn(of: answer["scope"]?.string, askedFor: options.request.scope)
        // A token never lasts longer than its provider lets it.
        if let seconds = answer["expires_in"]?.integer, let asked = options.request.minValid, seconds < asked {
            Output.note(
                "Warning: the token is valid for \(seconds) s, shorter than the \(asked) s of --min-valid: the provider's "
                    + "tokens do not last that long.")
        }
        // The provider took scopes away from the session when the downscoped token was requested.
        if let scope = answer["lost_scope"]?.string, let account = answer["account"]?.string {
            Output.note(
                "Warning: the session of \(account) lost the scope \(Sanitizer.line(scope, limit: 1_000)): its provider "
                    + "takes scopes away when a token with fewer scopes is requested. "
                    + "Run: \(shown: "ringback login \(account)")")
        }
        return answer
    }

    private static func session(_ options: TokenOptions) throws(RingbackError) -> JSON {
        var request = options.request
        if options.format.needsUser { request.include = "user" }
        let calls = try Daemon.calls(socket: options.socket)
        do throws(RingbackError) {
            return try calls.session(request)
        } catch {
            guard options.signsIn, ExitStatus.of(error) == 3, let account = request.account else { throw error }
            var run = SignInRun(account: account, opensBrowser: true)
            run.mayChooseDevice = true
            run.timeout = request.timeout.map { min(max($0, 1), 3_600) }
            let signedIn = try run.finish(Daemon.calls(socket: options.socket, Signals.interruption()))
            Output.note(SignInRun.result(account, signedIn))
            return try calls.session(request)
        }
    }
}

struct Token: DaemonVerb {
    static let configuration = CommandConfiguration(
        abstract: "Print an account's access token.",
        discussion: """
            Opens nothing unless --sign-in is given. Without ACCOUNT it is the only account, else the default account \
            (see ringback use).
            """)

    @Argument(help: "The account (or --issuer, or --origin).", completion: Completions.accounts) var account: String?
    @OptionGroup var choice: SessionOptions
    @Option(help: .value("url", "The account of this issuer, instead of a name.")) var issuer: String?
    @Option(help: "access_token or id_token.") var kind: TokenKind?

    @Option(help: .value("url", "The token that the origins of the configuration give for this URL."))
    var origin: String?

    @Option(help: .value("name", "The user name that a tool would say; with --origin.")) var username: String?
    @Option(help: "raw, header, json-headers, xoauth2, oauthbearer, netrc, env or json.") var format: TokenFormat = .raw
    @Option(help: .value("name", "The variable for the format env, RINGBACK_TOKEN by default.")) var variable: String?
    @Flag(help: "Sign in first if necessary.") var signIn = false
    @OptionGroup var proof: ProofOptions
    @OptionGroup var options: CallOptions

    func validate() throws {
        try require(
            [account ?? proof.account, issuer, origin].compactMap(\.self).count <= 1,
            "Name an account, an issuer by --issuer, or a URL by --origin, and not two of them.")
        let limits = choice.limits
        let choices = [limits.scope, limits.audience, limits.resource, choice.subject, kind?.rawValue]
        let isChosen = choices.contains { $0 != nil } || choice.minValid != nil || choice.timeout != nil
        try require(
            origin == nil || !isChosen,
            "With --origin the configuration says which token it is: no option may choose one.")
        try require(
            !proof.isWanted
                || !isChosen && [issuer, origin, variable].allSatisfy { $0 == nil } && format == .raw && !signIn,
            "--dpop gives the fields of one request: only an account, --nonce and --json may stand beside it.")
        try require(account == nil || proof.account == nil, "--dpop is a method and a URL: --dpop GET URL.")
        try require(username == nil || origin != nil, "--username needs --origin.")
        try require(
            format != .netrc || origin != nil || json.isWanted,
            "The format netrc needs the server's URL: --origin URL.")
        try require(variable == nil || format == .env, "--variable is for the format env.")
        try require(variable?.isVariableName ?? true, "--variable is no name of a variable.")
        try require(!signIn || (issuer == nil && origin == nil), "--sign-in needs an account's name.")
    }

    func run() throws {
        guard !proof.isWanted else { return try giveProof() }
        var options = TokenOptions()
        options.request = choice.request(
            issuer == nil && origin == nil ? try AccountChoice.name(account, for: "token", daemon) : nil)
        options.request.issuer = issuer
        options.origin = origin.map { OriginRequest(url: $0) }
        options.origin?.username = username
        if let variable { options.variable = variable }
        options.request.kind = kind == .accessToken ? nil : kind
        options.socket = daemon.socket
        options.format = json.isWanted ? .json : format
        options.signsIn = signIn
        try ExitStatus.end(with: TokenVerb.run(options))
    }

    private func giveProof() throws {
        let name = try AccountChoice.name(account ?? proof.account, for: "token", daemon)
        do throws(RingbackError) {
            try proof.run(name, try daemon.calls(), asJSON: json.isWanted)
        } catch {
            Failure(error: error, account: name).show()
            throw ExitCode(ExitStatus.of(error))
        }
    }
}

extension TokenFormat: ExpressibleByArgument {}
extension TokenKind: ExpressibleByArgument {}

enum TokenFormat: String, CaseIterable, Sendable {
    case raw
    /// `Authorization: Bearer …`, as curl's `-H` takes it; with an origin, the lines that it states.
    case header
    /// The initial response of SASL XOAUTH2 (mail servers), in base64.
    case xoauth2
    /// The initial response of SASL OAUTHBEARER (RFC 7628 section 3.1), in base64.
    case oauthbearer
    /// A JSON object with the header field, as the header helpers of AI tools read it.
    case jsonHeaders = "json-headers"
    case netrc
    case env
    case json

    /// True if the line contains the user's mail address.
    var needsUser: Bool { self == .xoauth2 || self == .oauthbearer }

    /// - Parameter variable: the name for ``env``.
    /// - Throws: `bad_response` for a token with characters that are not allowed in a token: in a header or in a line
    ///   of a protocol, they would add something to it.
    func text(_ printed: PrintedToken, variable: String) throws(RingbackError) -> String {
        if self == .json { return printed.json.visibleText }
        let token = try printed.token
        switch self {
        case .raw, .json: return token
        case .header: return try printed.fields().map { "\($0.name): \($0.value)" }.joined(separator: "\n")
        case .jsonHeaders:
            return JSON.object(JSONObject(try printed.fields().map { .init($0.name, .string($0.value)) })).visibleText
        case .xoauth2:
            let user = try printed.user(for: "XOAUTH2")
            return Base64.encode("user=\(user)\u{1}auth=Bearer \(token)\u{1}\u{1}".utf8)
        case .oauthbearer:
            // The two characters that the name of RFC 5801 section 4 cannot contain.
            let name: [UInt8] = try printed.user(for: "OAUTHBEARER").utf8.flatMap { byte in
                byte == UInt8(ascii: ",") ? Array("=2C".utf8) : byte == UInt8(ascii: "=") ? Array("=3D".utf8) : [byte]
            }
            return Base64.encode("n,a=".utf8 + name + Array(",\u{1}auth=Bearer \(token)\u{1}\u{1}".utf8))
        case .netrc: return try printed.netrc()
        case .env: return TokenLine.assignment(to: variable, token)
        }
    }
}

/// Recognises the common forms of `ringback token` without the general parser. Everything else, mistakes included, is
/// left to that parser: there is one place that explains usage.
enum HotToken {
    static func recognize(_ arguments: ArraySlice<String>) -> TokenOptions? {
        guard arguments.first == "token" else { return nil }
        var options = TokenOptions()
        var rest = arguments.dropFirst()
        while let word = rest.popFirst() {
            guard word.hasPrefix("-") else {
                guard options.request.account == nil, !word.isEmpty else { return nil }
                options.request.account = word
                continue
            }
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst(), !value.isEmpty,
                !value.hasPrefix("-"), take(value, as: parts[0], into: &options)
            else { return nil }
        }
        return options.request.account == nil ? nil : options
    }

    private static func take(_ value: String, as name: Substring, into options: inout TokenOptions) -> Bool {
        switch name {
        case "--min-valid":
            guard let seconds = Int(value), seconds >= 0 else { return false }
            options.request.minValid = seconds
        case "--socket": options.socket = value
        case "--scope": options.request.scope = value
        case "--audience": options.request.audience = value
        case "--format":
            // The general parser explains what netrc needs.
            guard let format = TokenFormat(rawValue: value), format != .netrc else { return false }
            options.format = format
        default: return false
        }
        return true
    }
}

struct PrintedToken {
    private enum Source {
        /// The daemon's response to a request for an account's session, and the member that is the token.
        case session(JSON, member: String)
        case origin(OriginCredential, WebURL)
    }

    private let source: Source

    init(session: JSON, kind: TokenKind?) {
        source = .session(session, member: (kind ?? .accessToken).rawValue)
    }

    init(_ credential: OriginCredential, for url: WebURL) { source = .origin(credential, url) }

    /// The token, of bytes from 0x21 to 0x7E.
    var token: String {
        get throws(RingbackError) {
            let (token, member): (String?, String) =
                switch source {
                case .session(let answer, let name): (answer[name]?.string, name)
                case .origin(let credential, _): (credential.secret, "secret")
                }
            guard let token, !token.isEmpty else {
                throw RingbackError(.badResponse, "The daemon's response has no “\(member)”.")
            }
            guard PrintedToken.isVisible(token) else {
                throw RingbackError(
                    .badResponse, "The token has characters that are not allowed in a token; it is not shown.")
            }
            return token
        }
    }

    var json: JSON {
        switch source {
        case .session(let answer, _): return answer
        case .origin(let credential, _):
            return .object([
                "account": credential.account, "headers": credential.headers, "username": credential.username,
                "secret": credential.secret, "expires_at": credential.expiresAt?.secondsSince1970,
                "warning": credential.warning,
            ])
        }
    }

    func fields() throws(RingbackError) -> [HTTPFields.Field] {
        switch source {
        case .session(let answer, _):
            let type = answer["token_type"]?.string ?? "Bearer"
            guard PrintedToken.isVisible(type) else {
                throw RingbackError(.badResponse, "The token's type has characters that no type has.")
            }
            return [
                HTTPFields.Field("Authorization", "\(type.lowercased() == "bearer" ? "Bearer" : type) \(try token)")
            ]
        case .origin(let credential, _):
            return try credential.headers.map { line throws(RingbackError) in
                guard let end = line.firstRange(of: ": "), line.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) else {
                    throw RingbackError(.badResponse, "The daemon's response has a header that is not one.")
                }
                return HTTPFields.Field(String(line[..<end.lowerBound]), String(line[end.upperBound...]))
            }
        }
    }

    func user(for mechanism: String) throws(RingbackError) -> String {
        switch source {
        case .session(let answer, _):
            let address = answer["user"]?["email"]?.string ?? answer.text("subject")
            guard address.contains("@"), PrintedToken.isName(address) else {
                throw RingbackError(
                    .badResponse, "\(mechanism) needs the account's mail address, and the provider names none.")
            }
            return address
        case .origin(let credential, _):
            guard let name = credential.username, PrintedToken.isName(name) else {
                throw RingbackError(
                    "no_username",
                    "\(mechanism) needs a user name without blanks and control characters: set username in the origin.")
            }
            return name
        }
    }

    /// A line of a netrc file. A name or token with a character that the readers of such files understand in different
    /// ways is refused: a quote or a backslash, or a number sign at the start.
    func netrc() throws(RingbackError) -> String {
        guard case .origin(let credential, let url) = source, let host = url.host else {
            throw RingbackError(ExitStatus.usageKind, "The format netrc needs the server's URL: --origin URL.")
        }
        let token = try token
        // GitLab, Gitea and Forgejo know this name for tokens.
        return try AdapterCalls.translated(
            try TokenLine.netrc(host: host, user: credential.username ?? "oauth2", token: token))
    }

    private static func isVisible(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    /// True for visible characters without blanks, in any script: SASL's names are UTF-8.
    private static func isName(_ text: String) -> Bool {
        !text.isEmpty && text.unicodeScalars.allSatisfy { $0.isVisible && $0 != " " }
    }
}
