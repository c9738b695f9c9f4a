import CLinux
import Cryptography
import CurlTransport
import Glibc
import LocalHTTP
import MCPBridge
import RingbackBase
import RingbackClient

/// What a request to an origin needs.
struct OriginAccess: Sendable {
    let fields: [(name: String, value: Secret)]
    /// The SHA-256 of the token, in hexadecimal digits.
    let digest: String
    let mask: SecretMask
    /// It has a proof, for one request.
    let isProved: Bool
}

/// The relay of one `ringback run` or `ringback exec`, with one thread for all connections. It asks the daemon for the
/// credentials with each request, so that a sign-out, a lock or a reload holds at once, and ends with the command.
final class HTTPRelayServer {
    /// With two windows of a transfer each: 48 MiB at most.
    private static let mostConversations = 64

    let streams: CurlStreams
    let nonces = ResourceNonces()
    private let orders: HTTPRelayOrders
    private let calls: BrokerCalls
    private let questions: Questions<OriginAccess>
    private var conversations: [Int32: HTTPConversation] = [:]
    private var nextNumber = 1
    /// Questions to the daemon without an answer, each of which has a thread: also those of clients that have gone.
    private var waiting = 0
    private static let mostWaiting = 64
    /// The SHA-256 of a token that a server refused, by the listener of its relay. The daemon is told with the next request.
    private var refused: [Int32: String] = [:]

    /// Nil if libcurl cannot be loaded.
    init?(_ orders: HTTPRelayOrders, daemon: String) {
        guard let streams = CurlStreams(version: Main.version) else { return nil }
        self.streams = streams
        self.orders = orders
        var calls = BrokerCalls(socket: daemon, application: orders.application)
        calls.client = orders.client
        self.calls = calls
        questions = Questions(streams.waker)
    }

    /// Returns when the command has ended.
    func run() {
        var hasMoved = false
        while true {
            var watched = conversations.values.map {
                CurlStreams.Watched($0.descriptor, input: $0.wantsInput, output: $0.wantsOutput)
            }
            watched.append(CurlStreams.Watched(orders.process))
            let takesMore =
                conversations.count < HTTPRelayServer.mostConversations
                || conversations.values.contains(where: \.isIdle)
            watched += orders.relays.map { CurlStreams.Watched($0.listener, input: takesMore) }
            streams.wait(&watched, atMost: hasMoved ? 0 : conversations.isEmpty ? 60_000 : 1_000)
            for entry in watched where entry.hasInput {
                if entry.descriptor == orders.process { return }
                if let relay = orders.relays.first(where: { $0.listener == entry.descriptor }) {
                    accept(for: relay)
                } else {
                    conversations[entry.descriptor]?.read()
                }
            }
            let answers = questions.answers()
            waiting -= answers.count
            for answer in answers {
                conversations.values.first { $0.number == answer.conversation }?.take(answer, self)
            }
            streams.advance()
            hasMoved = false
            for conversation in Array(conversations.values) {
                if conversation.pump(self) { hasMoved = true }
                if conversation.isOver || conversation.isLate { end(conversation) }
            }
        }
    }

    private func end(_ conversation: HTTPConversation) {
        conversation.end(streams)
        conversations[conversation.descriptor] = nil
    }

    private func accept(for relay: HTTPRelayOrders.Relay) {
        // Strangers who connect without pause do not hold up the others.
        for _ in 0..<HTTPRelayServer.mostConversations {
            let isFull = conversations.count >= HTTPRelayServer.mostConversations
            let idle = isFull ? conversations.values.filter(\.isIdle).min { $0.number < $1.number } : nil
            guard !isFull || idle != nil else { return }
            let descriptor = clinux_accept(relay.listener)
            guard descriptor >= 0 else { return }
            // Attack: another user of the machine connects to the port, to be served or to take all places.
            if relay.checksOwner, !HTTPRelayServer.isOwn(SocketOwner.uid(over: descriptor)) {
                close(descriptor)
                continue
            }
            if let idle { end(idle) }
            // An event of a stream is not to wait for the next one. A client that has gone, and not only ended its direction,
            // does not reply to a probe once the kernel has forgotten its socket, after a minute.
            let tcp = Int32(IPPROTO_TCP)
            let options = [
                (tcp, TCP_NODELAY, 1), (SOL_SOCKET, SO_KEEPALIVE, 1), (tcp, TCP_KEEPIDLE, 15), (tcp, TCP_KEEPINTVL, 15),
            ]
            for (level, name, value) in options {
                var value = Int32(value)
                _ = unsafe setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
            }
            conversations[descriptor] = HTTPConversation(descriptor, number: nextNumber, relay)
            nextNumber += 1
        }
    }

    static func isOwn(_ uid: UInt32?) -> Bool { uid == getuid() || uid == 0 }

    func noteRefused(_ digest: String, at relay: HTTPRelayOrders.Relay) { refused[relay.listener] = digest }

    /// Asks for the credentials for a request. Throws where too many questions wait.
    ///
    /// - Parameter nonce: what the server has answered the same request with.
    func ask(
        for conversation: HTTPConversation, _ request: RelayedRequest, nonce: String? = nil
    ) throws(RelayedRequest.Refusal) {
        guard waiting < HTTPRelayServer.mostWaiting else {
            throw RelayedRequest.Refusal(503, "The relay waits for too many answers of the daemon.", code: "timeout")
        }
        waiting += 1
        let relay = conversation.relay
        let rejected = refused.removeValue(forKey: relay.listener)
        // No origin and no proof has a query, which may have secrets.
        let place = request.url.origin + request.url.path
        var question = OriginRequest(url: place)
        (question.method, question.nonce) = (request.method, nonce ?? nonces[request.url])
        let asked = question
        questions.ask(for: conversation.number) { [calls] in
            do throws(RingbackError) {
                if let rejected {
                    var rejection = OriginRequest(url: place)
                    rejection.rejected = rejected
                    _ = try calls.lookup(rejection)
                }
                return .success(try OriginAccess(try calls.lookup(asked), relay, place))
            } catch {
                return .failure(RelayRefusal(error))
            }
        }
    }
}

extension OriginAccess {
    init(_ credential: OriginCredential, _ relay: HTTPRelayOrders.Relay, _ place: String) throws(RingbackError) {
        guard let token = credential.secret else { throw RingbackError(.badResponse, "The daemon gave no token.") }
        // A more specific origin may have another account, or a reload of the configuration has changed the table.
        guard credential.account == relay.account else {
            throw RingbackError(
                .policyDenied, "The origin of \(place) has the account \(credential.account), not \(relay.account).")
        }
        fields = credential.headers.compactMap { line in
            guard let colon = line.firstRange(of: ": ") else { return nil }
            return (String(line[..<colon.lowerBound]), Secret(String(line[colon.upperBound...])))
        }
        let secret = Secret(token)
        digest = Digest.hex(Digest.sha256(secret))
        let proof = fields.first { $0.name == "DPoP" }?.value
        mask = SecretMask([secret] + (proof.map { [$0] } ?? []))
        isProved = proof != nil
    }
}

/// What `ringback` says of a command's relays: JSON in a file that is inherited.
struct HTTPRelayOrders {
    struct Relay: Sendable {
        /// A listening socket at the origin's port on loopback, here or in a network namespace of its own.
        let listener: Int32
        let origin: RelayedOrigin
        /// The only account whose token is sent.
        let account: String
        /// Other users of the machine can reach the port.
        let checksOwner: Bool
    }

    /// A pidfd of the command.
    let process: Int32
    /// The command's process id.
    let client: Int32
    /// For the audit log.
    let application: String
    let relays: [Relay]

    init?(readingFrom descriptor: Int32) {
        var bytes = [UInt8](repeating: 0, count: 1 << 17)
        let count = unsafe read(descriptor, &bytes, bytes.count)
        close(descriptor)
        guard count > 0, count < bytes.count, let json = try? JSON(parsing: Array(bytes[..<count])),
            let process = json["process"]?.integer.flatMap({ Int32(exactly: $0) }),
            let client = json["client"]?.integer.flatMap({ Int32(exactly: $0) }),
            let application = json["application"]?.string, let list = json["relays"]?.array
        else { return nil }
        (self.process, self.client) = (process, client)
        self.application = application
        var relays: [Relay] = []
        for entry in list {
            guard let listener = entry["listener"]?.integer.flatMap({ Int32(exactly: $0) }),
                let port = entry["port"]?.integer, let text = entry["url"]?.string,
                let account = entry["account"]?.string,
                let url = try? WebURL(parsing: text), let origin = RelayedOrigin(url, port: port),
                fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) | O_NONBLOCK) == 0
            else { return nil }
            relays.append(
                Relay(
                    listener: listener, origin: origin, account: account,
                    checksOwner: entry["shared"]?.bool ?? true))
        }
        self.relays = relays
        for inherited in relays.map(\.listener) + [process] { _ = fcntl(inherited, F_SETFD, FD_CLOEXEC) }
    }
}
