import Cryptography
import CurlTransport
import MCPBridge
import RingbackAPI
import RingbackBase
import RingbackClient
import Synchronization

/// Calls that may take long, on a thread for each.
final class Questions<Value: Sendable>: Sendable {
    /// The answer for a conversation, by its number: a descriptor may be another connection's by then.
    struct Answer: Sendable {
        let conversation: Int
        let result: Result<Value, RelayRefusal>
    }

    private let waker: CurlStreams.Waker
    private let ready = Mutex<[Answer]>([])

    init(_ waker: CurlStreams.Waker) { self.waker = waker }

    /// The answer is among ``answers()`` later.
    func ask(for conversation: Int, _ question: @escaping @Sendable () -> Result<Value, RelayRefusal>) {
        let failure = Blocking.start { [self] in give(Answer(conversation: conversation, result: question())) }
        if failure != 0 {
            let refusal = RelayRefusal(code: "system_error", detail: "No thread could be started.")
            give(Answer(conversation: conversation, result: .failure(refusal)))
        }
    }

    /// The answers since the last call.
    func answers() -> [Answer] {
        ready.withLock { answers in
            defer { answers = [] }
            return answers
        }
    }

    private func give(_ answer: Answer) {
        ready.withLock { $0.append(answer) }
        waker.wake()
    }
}

/// Asks the daemon where an account's server is and for a token, on a thread for each question: for what may take long, or
/// did not go well over a kept connection (``DaemonLines``).
final class AccessLookup: Sendable {
    /// How an account's server is reached.
    struct Server: Sendable {
        var url: WebURL
        let trust: ServerTrust
        let proxy: HTTPProxy?
        let headers: [(String, String)]
        /// Its name must not lead to this machine.
        let isOutside: Bool
        /// False if no token is sent to it, of whichever account.
        let needsSignIn: Bool
    }

    /// What a request needs.
    struct Access: Sendable {
        var server: Server
        /// Nil for a server that needs no sign-in.
        let authorization: Secret?
        /// The SHA-256 of the token, in hexadecimal digits.
        let digest: String?
        /// Beside a token that is bound to a key, for one request.
        let proof: Secret?
        let isBound: Bool
        /// The request cannot be sent with it.
        var lacksProof: Bool { isBound && proof == nil }

        /// Without a token.
        init(_ server: Server) {
            self.server = server
            (authorization, digest, proof, isBound) = (nil, nil, nil, false)
        }

        /// - Parameter answer: the daemon's, with the token, and perhaps with a proof.
        init(_ server: Server, _ answer: JSON) throws(RingbackError) {
            let session = try Session(reading: answer)
            self.server = server
            authorization = Secret(session.authorization)
            digest = Digest.hex(Digest.sha256(session.accessToken))
            proof = answer["dpop"]?.string.map { Secret($0) }
            isBound = session.tokenType.lowercased() == "dpop"
        }
    }

    /// What is kept of it once the request was sent: not the token, since a response may last for days.
    struct Sent {
        let url: WebURL
        /// The token's SHA-256.
        let token: String?
        /// With a proof.
        var isProved = false
    }

    typealias Answer = Questions<Access>.Answer

    let calls: BrokerCalls
    let nonces = ResourceNonces()
    private let questions: Questions<Access>

    /// - Parameter application: for the audit log.
    init(daemon: String, waker: CurlStreams.Waker, application: String = "ringback mcp") {
        calls = BrokerCalls(socket: daemon, application: application)
        questions = Questions(waker)
    }

    /// The answer is among ``answers()`` later.
    ///
    /// - Parameters:
    ///   - client: the process for which it is asked; nil for an exposed socket's.
    ///   - nonce: of the server, for the same request.
    func ask(
        _ request: RelayRequest, for conversation: Int, of client: Int32? = nil, nonce: String? = nil
    ) {
        var calls = calls
        calls.client = client
        questions.ask(for: conversation) { [calls, nonces] in AccessLookup.access(request, nonce: nonce, calls, nonces)
        }
    }

    /// The answers since the last call.
    func answers() -> [Answer] { questions.answers() }

    private static func access(
        _ request: RelayRequest, nonce: String?, _ calls: BrokerCalls, _ nonces: ResourceNonces
    ) -> Result<Access, RelayRefusal> {
        do throws(RingbackError) {
            let server = try Server(reading: try calls.call(.getMCPServer, [request.account]))
            guard server.needsSignIn else { return .success(Access(server)) }
            if let rejected = request.rejected {
                _ = try calls.call(.refresh, [request.account], body: ["rejected_sha256": .string(rejected)])
            }
            var question = SessionRequest(account: request.account)
            if let wait = request.signInWait {
                question.waitsForSignIn = true
                question.timeout = wait
            }
            let access = try Access(server, try calls.session(question))
            guard access.lacksProof else { return .success(access) }
            let proof = request.proof(at: server.url, nonce: nonce, nonces)
            return .success(try Access(server, try calls.proof(proof, of: request.account)))
        } catch {
            return .failure(RelayRefusal(error))
        }
    }
}

extension RelayRefusal {
    init(_ error: RingbackError) {
        self.init(code: error.kind.rawValue, detail: error.detail, needsSignIn: error.recovery == .signIn)
    }
}

extension AccessLookup.Server {
    init(reading server: JSON) throws(RingbackError) {
        guard let text = server["url"]?.string, let url = try? WebURL(parsing: text) else {
            throw RingbackError(.badResponse, "The daemon's response has no “url”.")
        }
        self.url = url
        trust = ServerTrust(
            certificateAuthorities: server["certificate_authorities"]?.string.map { Array($0.utf8) },
            pinnedPublicKeys: (server["pinned_public_keys"]?.array ?? []).compactMap(\.string))
        headers = (server["headers"]?.array ?? []).compactMap { entry in
            guard let name = entry["name"]?.string, let value = entry["value"]?.string else { return nil }
            return (name, value)
        }
        isOutside = server["outside"]?.bool ?? false
        needsSignIn = server["sign_in"]?.bool ?? true
        guard let proxy = server["proxy"]?["url"]?.string.flatMap({ try? WebURL(parsing: $0) }) else {
            self.proxy = nil
            return
        }
        let password = Secret(server["proxy"]?["password"]?.string ?? "")
        let user = server["proxy"]?["user"]?.string
        self.proxy = HTTPProxy(url: proxy, credentials: user.map { .init(user: $0, password: password) })
    }
}
