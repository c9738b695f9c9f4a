import Adapters
import Glibc
import HTTPMessages
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

extension ConnectionSettings {
    /// The members of a lookup.
    fileprivate var members: JSONObject {
        var members = JSONObject()
        if withoutScheme { members["without_scheme"] = true }
        members["ca_sha256"] = authorities.first.map { .string($0) }
        members["tls_server_name"] = serverNames.first.map { .string($0) }
        if skipsVerification { members["insecure_skip_tls_verify"] = true }
        members["proxy_url"] = proxies.first.map { .string($0) }
        return members
    }
}

/// What every adapter does beside its tool's protocol: it reads the tool's input, asks the daemon, and writes the answer.
struct AdapterCalls {
    /// The daemon's socket, if not the usual one.
    let socket: String?
    /// The tool's name, for the audit log.
    let tool: String

    /// The longest wait for a sign-in, in seconds.
    static let signInWait = 120

    /// The credential for a place of the table of origins.
    ///
    /// - Parameter mayWait: says whether a user can be expected to sign in now. Then the call waits for that, two minutes
    ///   at most.
    func lookup(
        _ request: AdapterRequest, mayWait: () -> Bool
    ) throws(RingbackError) -> AdapterCredential {
        var wanted = OriginRequest(url: request.url)
        wanted.username = request.username
        wanted.settings = request.settings.members
        let lookup = wanted
        return try waiting(mayWait) { isWaiting throws(RingbackError) in
            var lookup = lookup
            lookup.isInteractive = isWaiting
            let found = try calls().lookup(lookup)
            if let warning = found.warning { AdapterCalls.note(warning) }
            guard let secret = found.secret else {
                throw RingbackError(.badResponse, "The daemon's response has no “secret”.")
            }
            return AdapterCredential(
                headers: found.headers, username: found.username, secret: secret,
                expiresAt: found.expiresAt?.secondsSince1970)
        }
    }

    /// The token of an account. The table of origins is not asked.
    func session(_ request: SessionRequest, mayWait: () -> Bool) throws(RingbackError) -> AdapterCredential {
        try waiting(mayWait) { isWaiting throws(RingbackError) in
            var request = request
            if isWaiting { (request.waitsForSignIn, request.timeout) = (true, AdapterCalls.signInWait) }
            let answer = try calls().session(request)
            let member = (request.kind ?? .accessToken).rawValue
            guard let token = answer[member]?.string, !token.isEmpty else {
                throw RingbackError(.badResponse, "The daemon's response has no “\(member)”.")
            }
            return AdapterCredential(
                headers: ["Authorization: Bearer \(token)"], username: nil, secret: token,
                expiresAt: answer["expires_at"]?.integer)
        }
    }

    /// Calls once, and again, waiting for a sign-in, if one is needed.
    private func waiting(
        _ mayWait: () -> Bool, _ call: (Bool) throws(RingbackError) -> AdapterCredential
    ) throws(RingbackError) -> AdapterCredential {
        do throws(RingbackError) {
            return try call(false)
        } catch {
            guard ExitStatus.of(error) == 3, mayWait() else { throw error }
            AdapterCalls.show(error)
            Output.note("Waiting for the sign-in, two minutes at most. Ctrl-C ends this.")
            return try call(true)
        }
    }

    /// Tells the daemon which token the server refused. The tool cannot do anything about a failure.
    ///
    /// - Returns: the exit status.
    func reject(_ request: AdapterRequest) -> Int32 {
        var rejection = OriginRequest(url: request.url)
        rejection.username = request.username
        rejection.rejected = request.rejected
        rejection.isGuess = request.isGuess
        do throws(RingbackError) {
            if let warning = try calls().lookup(rejection).warning { AdapterCalls.note(warning) }
            return 0
        } catch {
            return error.kind == .notFound ? 0 : ExitStatus.of(error)
        }
    }

    func calls() throws(RingbackError) -> BrokerCalls {
        var calls = try Daemon.calls(socket: socket)
        calls.application = tool
        return calls
    }

    /// Shows why there is no token, and what to do, on standard error.
    static func show(_ error: RingbackError) { failure(error).show() }

    static func failure(_ error: RingbackError) -> Failure {
        Failure(error, account: error.problem?.extensions["account"]?.string)
    }

    static func note(_ text: String) { Output.note("ringback: " + Sanitizer.line(text, limit: 1_000)) }

    /// Prints an answer to the tool.
    ///
    /// - Returns: the exit status.
    static func print(_ bytes: [UInt8]) -> Int32 {
        Console.write(String(decoding: bytes, as: UTF8.self), to: .output) ? 0 : ExitStatus.failed
    }

    /// Everything on standard input, at least one byte more than is allowed if there is more.
    static func readInput(atMost limit: Int) -> [UInt8] {
        var input: [UInt8] = []
        // A tool writes less than this. A larger buffer would cost a page fault for each of its pages.
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while input.count <= limit {
            let count = unsafe read(STDIN_FILENO, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            input += buffer[..<count]
        }
        return input
    }
}
