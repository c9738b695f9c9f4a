import CurlTransport
import MCPBridge
import RingbackAPI
import RingbackBase
import RingbackClient

/// Kept connections to the daemon, on the loop's own thread. Where the server is and the token are asked for anew with each
/// request, so that a sign-out, a lock or a reload holds at once; both questions go out together, and for a token that the
/// daemon holds it answers both without a wait. A connection has one request at a time.
final class DaemonLines {
    private struct Question {
        let conversation: Int
        let client: Int32
        let request: RelayRequest
        let bytes: [UInt8]
        /// The server for which a proof is asked for, in place of the token alone.
        let proved: WebURL?
        let nonce: String?
        let end: ContinuousClock.Instant
    }

    private final class Line {
        let connection: KeptConnection
        var question: Question
        /// The response to the first question.
        var server: KeptConnection.Response?

        init(_ connection: KeptConnection, _ question: Question) {
            self.connection = connection
            self.question = question
        }
    }

    /// What a response of the daemon was read as, for as long as it stays the same.
    private struct KnownServer {
        let body: [UInt8]
        let server: AccessLookup.Server
        /// The last token was bound to a key: the next request asks for a proof at once.
        var isBound = false
    }

    /// Connections that wait for a response. Each takes a descriptor at both ends.
    private static let mostBusy = 64
    private static let mostIdle = 4
    private static let mostKnown = 64
    /// The daemon limits its own waits to 30 s. The rest is for one that hangs.
    private static let bound = Duration.seconds(35)

    private let calls: BrokerCalls
    let lookup: AccessLookup
    private var busy: [Int32: Line] = [:]
    private var idle: [KeptConnection] = []
    private var known: [String: KnownServer] = [:]
    private var ready: [AccessLookup.Answer] = []
    /// True if the daemon has ended: it closed a kept connection, and accepted no other one since.
    private(set) var hasLostDaemon = false

    init(_ lookup: AccessLookup) {
        self.lookup = lookup
        calls = lookup.calls
    }

    /// Asks what a request needs. The answer is among ``answers()`` later, or among the lookup's.
    ///
    /// - Parameters:
    ///   - client: the process for which it is asked.
    ///   - nonce: of the server, for the same request.
    func ask(_ request: RelayRequest, for conversation: Int, of client: Int32, nonce: String? = nil) {
        var calls = calls
        calls.client = client
        let proved = known[request.account].flatMap { $0.isBound ? $0.server.url : nil }
        let proof = proved.map { request.proof(at: $0, nonce: nonce, lookup.nonces).body }
        guard request.rejected == nil, request.signInWait == nil, busy.count < DaemonLines.mostBusy,
            let server = try? calls.request(.getMCPServer, [request.account]),
            let session = try? calls.request(
                proof == nil ? .getSession : .makeProof, [request.account], body: proof)
        else { return lookup.ask(request, for: conversation, of: client, nonce: nonce) }
        let question = Question(
            conversation: conversation, client: client, request: request, bytes: server + session, proved: proved,
            nonce: nonce,
            end: .now + DaemonLines.bound)
        while let connection = idle.popLast() {
            if connection.send(question.bytes) { return wait(connection, question) }
        }
        askAnew(question)
    }

    private func askAnew(_ question: Question) {
        guard let connection = try? KeptConnection(calls), connection.send(question.bytes) else {
            return lookup.ask(
                question.request, for: question.conversation, of: question.client, nonce: question.nonce)
        }
        wait(connection, question)
    }

    private func wait(_ connection: KeptConnection, _ question: Question) {
        busy[connection.descriptor] = Line(connection, question)
        hasLostDaemon = false
    }

    /// The descriptors that bring responses, or the end of a kept connection.
    var watched: [CurlStreams.Watched] {
        (Array(busy.keys) + idle.map(\.descriptor)).map { CurlStreams.Watched($0) }
    }

    /// When the first of the waits is over.
    var deadline: ContinuousClock.Instant? { busy.values.map(\.question.end).min() }

    /// Reads what has come. False for a descriptor that is none of these connections.
    func read(_ descriptor: Int32) -> Bool {
        if let place = idle.firstIndex(where: { $0.descriptor == descriptor }) {
            let closed = idle.remove(at: place)
            // A daemon may close it for other reasons, too. One that is ending may still accept a connection, whose end is
            // then the sign.
            let next = try? KeptConnection(calls)
            hasLostDaemon = next == nil
            if let next, closed.hasServed { idle.append(next) }
            return true
        }
        guard let line = busy[descriptor] else { return false }
        do throws(RingbackError) {
            if line.server == nil { line.server = try line.connection.next() }
            guard let server = line.server, let session = try line.connection.next() else { return true }
            busy[descriptor] = nil
            if line.connection.isKept, idle.count < DaemonLines.mostIdle { idle.append(line.connection) }
            let question = line.question
            let account = question.request.account
            let result = Result { () throws(RingbackError) in try access(account, server, session) }
            // The first bound token of the account, or another server than the one of the proof.
            if case .success(let access) = result, access.isBound, question.proved != access.server.url {
                lookup.ask(
                    question.request, for: question.conversation, of: question.client, nonce: question.nonce)
            } else {
                give(question, result)
            }
        } catch {
            busy[descriptor] = nil
            // The daemon may have closed a kept connection, or be another one by now. What went wrong otherwise is found
            // out by calls of their own.
            if line.connection.hasServed, line.server == nil {
                askAnew(line.question)
            } else {
                lookup.ask(
                    line.question.request, for: line.question.conversation, of: line.question.client,
                    nonce: line.question.nonce)
            }
        }
        return true
    }

    private func access(
        _ account: String, _ server: KeptConnection.Response, _ session: KeptConnection.Response
    ) throws(RingbackError) -> AccessLookup.Access {
        let server = try self.server(account, server)
        guard server.needsSignIn else { return AccessLookup.Access(server) }
        let access = try AccessLookup.Access(server, try BrokerCalls.json(session))
        if known[account]?.isBound != access.isBound { known[account]?.isBound = access.isBound }
        return access
    }

    private func server(
        _ account: String, _ response: KeptConnection.Response
    ) throws(RingbackError) -> AccessLookup.Server {
        if let known = known[account], known.body == response.body { return known.server }
        let server = try AccessLookup.Server(reading: try BrokerCalls.json(response))
        if known.count >= DaemonLines.mostKnown { known = [:] }
        known[account] = KnownServer(body: response.body, server: server)
        return server
    }

    /// The answers since the last call, and those of waits that were too long.
    func answers() -> [AccessLookup.Answer] {
        if let deadline, deadline <= .now {
            for (descriptor, line) in busy where line.question.end <= .now {
                busy[descriptor] = nil
                give(line.question, .failure(RingbackError(.timedOut, "The daemon did not respond in time.")))
            }
        }
        defer { ready = [] }
        return ready
    }

    private func give(_ question: Question, _ result: Result<AccessLookup.Access, RingbackError>) {
        ready.append(
            AccessLookup.Answer(
                conversation: question.conversation, result: result.mapError { RelayRefusal($0) }))
    }
}
