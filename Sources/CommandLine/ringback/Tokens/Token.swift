import Adapters
import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// What `ringback token` was asked for.
struct TokenOptions {
    var request = SessionRequest(account: nil)
    var socket: String?
    var format = TokenFormat.raw
    /// The variable that the format `env` assigns to.
    var variable = "RINGBACK_TOKEN"
    /// What the table of origins is asked for, instead of an account.
    var origin: OriginRequest?
    var signsIn = false
}

/// Requests the token and prints it. Both parsers end here.
enum TokenVerb {
    /// The exit status.
    static func run(_ options: TokenOptions) -> Int32 {
        do throws(RingbackError) {
            Output.line(try options.format.text(try printed(options), variable: options.variable))
            return 0
        } catch {
            Failure(error, account: options.request.account).show()
            return ExitStatus.of(error)
        }
    }

    private static func printed(_ options: TokenOptions) throws(RingbackError) -> PrintedToken {
        guard let origin = options.origin else {
            return PrintedToken(session: try answer(options), kind: options.request.kind)
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

    /// The daemon's response, after a sign-in if that was asked for.
    static func answer(_ options: TokenOptions) throws(RingbackError) -> JSON {
        let answer = try session(options)
        warn(of: answer["scope"]?.string, askedFor: options.request.scope)
        warn(ofValidity: answer["expires_in"]?.integer, askedFor: options.request.minValid)
        warn(ofLost: answer["lost_scope"]?.string, answer["account"]?.string)
        return answer
    }

    /// The provider took scopes away from the session when the downscoped token was requested.
    private static func warn(ofLost scope: String?, _ account: String?) {
        guard let scope, let account else { return }
        Output.note(
            "Warning: the session of \(account) lost the scope \(Sanitizer.line(scope, limit: 1_000)): its provider takes "
                + "scopes away when a token with fewer scopes is requested. Run: \(shown: "ringback login \(account)")")
    }

    /// A token never lasts longer than its provider lets it.
    private static func warn(ofValidity seconds: Int?, askedFor asked: Int?) {
        guard let seconds, let asked, seconds < asked else { return }
        Output.note(
            "Warning: the token is valid for \(seconds) s, shorter than the \(asked) s of --min-valid: the provider's "
                + "tokens do not last that long.")
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
            let signedIn = try run.finish(Daemon.calls(socket: options.socket, try Signals.interruption()))
            Output.note(SignInRun.result(account, signedIn))
            return try calls.session(request)
        }
    }
}

struct Token: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print an account's access token.",
        discussion: """
            Opens nothing unless --sign-in is given. Without ACCOUNT it is the only account, else the default account \
            (see ringback use).
            """)

    @Argument(help: "The account (or --issuer, or --origin).", completion: Completions.accounts)
    var account: String?

    @OptionGroup var choice: SessionOptions

    @Option(help: ArgumentHelp("The account of this issuer, instead of a name.", valueName: "url"))
    var issuer: String?

    @Option(help: "access_token or id_token.")
    var kind: TokenKind?

    @Option(
        help: ArgumentHelp("The token that the origins of the configuration give for this URL.", valueName: "url"))
    var origin: String?

    @Option(help: ArgumentHelp("The user name that a tool would say; with --origin.", valueName: "name"))
    var username: String?

    @Option(help: "raw, header, json-headers, xoauth2, oauthbearer, netrc, env or json.")
    var format: TokenFormat = .raw

    @Option(help: ArgumentHelp("The variable for the format env, RINGBACK_TOKEN by default.", valueName: "name"))
    var variable: String?

    @Flag(help: "Sign in first if necessary.")
    var signIn = false

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard [account, issuer, origin].compactMap(\.self).count <= 1 else {
            throw ValidationError("Name an account, an issuer by --issuer, or a URL by --origin, and not two of them.")
        }
        let choices = [choice.scope, choice.audience, choice.resource, choice.subject, kind?.rawValue]
        if origin != nil, choices.contains(where: { $0 != nil }) || choice.minValid != nil || choice.timeout != nil {
            throw ValidationError("With --origin the configuration says which token it is: no option may choose one.")
        }
        guard username == nil || origin != nil else { throw ValidationError("--username needs --origin.") }
        guard format != .netrc || origin != nil || json.isWanted else {
            throw ValidationError("The format netrc needs the server's URL: --origin URL.")
        }
        if let variable {
            guard format == .env else { throw ValidationError("--variable is for the format env.") }
            guard ExecToken.isVariable(variable) else { throw ValidationError("--variable is no name of a variable.") }
        }
        if signIn, issuer != nil || origin != nil { throw ValidationError("--sign-in needs an account's name.") }
    }

    func run() throws {
        var options = TokenOptions()
        options.request = choice.request(
            issuer == nil && origin == nil ? try AccountChoice.name(account, for: "token", daemon) : nil)
        options.request.issuer = issuer
        options.origin = origin.map { url in
            var request = OriginRequest(url: url)
            request.username = username
            return request
        }
        if let variable { options.variable = variable }
        options.request.kind = kind == .accessToken ? nil : kind
        options.socket = daemon.socket
        options.format = json.isWanted ? .json : format
        options.signsIn = signIn
        let status = TokenVerb.run(options)
        if status != 0 { throw ExitCode(status) }
    }
}

extension TokenFormat: ExpressibleByArgument {}
extension TokenKind: ExpressibleByArgument {}

/// How `ringback token` prints what it got.
enum TokenFormat: String, CaseIterable, Sendable {
    /// The token alone.
    case raw
    /// `Authorization: Bearer …`, as curl's `-H` takes it; with an origin, the lines that it states.
    case header
    /// The initial response of SASL XOAUTH2 (mail servers), in base64.
    case xoauth2
    /// The initial response of SASL OAUTHBEARER (RFC 7628 section 3.1), in base64.
    case oauthbearer
    /// A JSON object with the header field, as the header helpers of AI tools read it.
    case jsonHeaders = "json-headers"
    /// A line of a netrc file, for an origin.
    case netrc
    /// An assignment to a variable, for a POSIX shell.
    case env
    /// The daemon's response.
    case json

    /// True if the line contains the user's mail address.
    var needsUser: Bool { self == .xoauth2 || self == .oauthbearer }

    /// What to print, without the last line break.
    ///
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

/// Reads an initial access token from a descriptor, or from a terminal without echo, as every secret.
enum AccountToken {
    private static let maxLength = 8_192

    static func read(from descriptor: Int32) throws(RingbackError) -> String {
        let input = SecretInput(interruption: try Signals.interruption())
        guard let token = try input.readOptional("initial access token", from: descriptor) else {
            throw RingbackError(.cancelled, "No initial access token was read. Nothing was registered.")
        }
        guard token.utf8.count <= maxLength, token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw RingbackError(.systemError, "The initial access token is too long, or has characters that none has.")
        }
        return token
    }
}
