import ArgumentParser
import RingbackClient
import StrictJSON
import Terminal

/// What `ringback token` was asked for.
struct TokenOptions {
    var request = SessionRequest(account: nil)
    var socket: String?
    var format = TokenFormat.raw
    var signsIn = false
}

/// Requests the token and prints it. Both parsers end here.
enum TokenVerb {
    /// The exit status.
    static func run(_ options: TokenOptions) -> Int32 {
        do throws(RingbackError) {
            Output.line(try options.format.line(try answer(options), kind: options.request.kind))
            return 0
        } catch {
            Failure(error, account: options.request.account).show()
            return ExitStatus.of(error)
        }
    }

    /// Some providers give the whole scope whatever is requested, and say so.
    static func warn(of scope: String?, askedFor asked: String?) {
        guard let scope, let asked else { return }
        let excess = Set(scope.split(separator: " ")).subtracting(asked.split(separator: " ")).sorted()
        guard !excess.isEmpty else { return }
        let scopes = Sanitizer.line(excess.joined(separator: " "), limit: 1_000)
        Output.note("Warning: the provider gave a token with more scope than was requested: \(scopes).")
    }

    /// The daemon's response, after a sign-in if that was asked for.
    static func answer(_ options: TokenOptions) throws(RingbackError) -> JSON {
        let answer = try session(options)
        warn(of: answer["scope"]?.string, askedFor: options.request.scope)
        warn(ofValidity: answer["expires_in"]?.integer, askedFor: options.request.minValid)
        return answer
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
        discussion: "Opens nothing unless --sign-in is given.")

    @Argument(help: "The account (or --issuer).")
    var account: String?

    @OptionGroup var choice: SessionOptions

    @Option(help: ArgumentHelp("The account of this issuer, instead of a name.", valueName: "url"))
    var issuer: String?

    @Option(help: "access_token or id_token.")
    var kind: String?

    @Option(help: "raw, header, json-headers, xoauth2, oauthbearer or json.")
    var format: TokenFormat = .raw

    @Flag(help: "Sign in first if necessary.")
    var signIn = false

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard (account == nil) != (issuer == nil) else {
            throw ValidationError("Name an account, or an issuer by --issuer.")
        }
        if signIn, account == nil { throw ValidationError("--sign-in needs an account's name.") }
        guard [nil, "access_token", "id_token"].contains(kind) else {
            throw ValidationError("--kind must be access_token or id_token.")
        }
    }

    func run() throws {
        var options = TokenOptions()
        options.request = choice.request(account)
        options.request.issuer = issuer
        options.request.kind = kind == "access_token" ? nil : kind
        options.socket = daemon.socket
        options.format = json.isWanted ? .json : format
        options.signsIn = signIn
        let status = TokenVerb.run(options)
        if status != 0 { throw ExitCode(status) }
    }
}

extension TokenFormat: ExpressibleByArgument {}
