import Adapters
import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct OIDCTokenVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "oidc-token", abstract: "Print a token as oidc-agent's oidc-token does.",
        discussion: """
            For scripts that run oidc-token: the same options, output and exit statuses. Also run as oidc-token, through \
            a link in a folder of PATH before that of oidc-agent.
            """)

    @Argument(parsing: .captureForPassthrough, help: "As of oidc-token: [OPTION]… ACCOUNT or ISSUER")
    var words: [String] = []

    func run() throws {
        try ExitStatus.end(with: OIDCTokenRun.run(words))
    }
}

enum OIDCTokenRun {
    /// The exit status: 0, 1, or 64 for a mistake in the arguments, as that program's.
    static func run(_ arguments: [String]) -> Int32 {
        let command: OIDCToken
        do throws(AdapterFailure) {
            command = try OIDCToken(arguments)
        } catch {
            AdapterCalls.note("\(error.reason) To see the options: oidc-token --help")
            return ExitStatus.usage
        }
        switch command.page {
        case .help: return AdapterCalls.print(Array(OIDCToken.help.utf8))
        case .usage: return AdapterCalls.print(Array(OIDCToken.usage.utf8))
        case .version: return AdapterCalls.print(Array("oidc-token of ringback \(Ringback.version)\n".utf8))
        case nil: break
        }
        do throws(RingbackError) {
            let facts = try facts(of: command)
            return AdapterCalls.print(try AdapterCalls.translated(try command.answer(facts)))
        } catch {
            AdapterCalls.show(error)
            return ExitStatus.failed
        }
    }

    private static func facts(of command: OIDCToken) throws(RingbackError) -> OIDCToken.Facts {
        let calls = try AdapterCalls(socket: nil, tool: "oidc-token").calls()
        var request = SessionRequest(account: nil)
        switch command.account {
        case .name(let name):
            guard RequestTarget.isAccountName(name) else {
                throw RingbackError(.accountNotFound, "There is no account of that name.")
            }
            request.account = name
        case .issuer(let issuer): request.issuer = issuer
        }
        request.minValid = command.minValid
        request.scope = command.scope
        request.audience = command.audience
        if command.isIDToken { request.kind = .idToken }
        var answer = try session(request, calls)
        if command.isForced, let account = answer["account"]?.string {
            _ = try calls.call(.refresh, [account], body: ["force": true])
            answer = try session(request, calls)
        }
        let member = (request.kind ?? .accessToken).rawValue
        guard let token = answer[member]?.string, let issuer = answer["issuer"]?.string else {
            throw RingbackError(.badResponse, "The daemon's response has no “\(member)” or no “issuer”.")
        }
        return OIDCToken.Facts(token: token, issuer: issuer, expiresAt: answer["expires_at"]?.integer)
    }

    /// An issuer of oidc-agent ends with a slash, whatever the provider calls itself.
    private static func session(_ request: SessionRequest, _ calls: BrokerCalls) throws(RingbackError) -> JSON {
        do throws(RingbackError) {
            return try calls.session(request)
        } catch {
            guard error.kind == .accountNotFound, let issuer = request.issuer else { throw error }
            var other = request
            other.issuer = issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer + "/"
            return try calls.session(other)
        }
    }
}
