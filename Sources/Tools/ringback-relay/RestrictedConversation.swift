import CurlTransport
import Glibc
import MCPBridge
import OAuth
import RingbackBase

/// A connection of an exposed socket's program: one request and its response. The whole message is there before anything is
/// sent, and only what was judged is.
final class RestrictedConversation: BridgeConnection {
    private enum State {
        /// The line of the request is awaited.
        case line
        case body(RelayRequest)
        case token(RestrictedRequest, togglesSlash: Bool)
        case streaming(StreamTransfer, AccessLookup.Sent, RestrictedResponse)
        /// What is left is sent, then the connection is closed.
        case closing
    }

    private static let window = 1 << 20
    /// How long a program may take to send its request.
    private static let patience = Duration.seconds(60)

    let peer: (uid: Int, pid: Int)
    private let memory: SocketMemory
    private var orders: RestrictedOrders { memory.orders }
    private var state = State.line
    /// What was not sent and what was not passed on, until it is reported.
    var denials: [MessageRule.Refusal] = []
    var withheld: [ResponseRule.Reason] = []
    /// The request with a proof that can be sent once more.
    private var repeatable: (request: RestrictedRequest, togglesSlash: Bool)?
    private var isRepeated = false
    private let begin = ContinuousClock.now

    init(_ descriptor: Int32, number: Int, peer: (uid: Int, pid: Int), _ memory: SocketMemory) {
        self.peer = peer
        self.memory = memory
        super.init(descriptor, number: number)
    }

    /// Input is also the way to learn that the program has gone.
    var wantsInput: Bool {
        if case .closing = state { false } else { true }
    }

    /// Bytes of the request that are held or awaited.
    var heldOfRequest: Int {
        switch state {
        case .line: input.count
        case .body(let request): request.length
        case .token(let request, _): request.body.count
        case .streaming(let transfer, _, _): transfer.unsentBytes
        case .closing: 0
        }
    }

    /// Bytes of the response that are held: of the message that is not whole, and those that the program does not take.
    var heldOfResponse: Int {
        if case .streaming(_, _, let response) = state { output.held + response.held } else { output.held }
    }

    /// True if the request does not come.
    var isLate: Bool {
        switch state {
        case .line, .body: ContinuousClock.now - begin > RestrictedConversation.patience
        default: false
        }
    }

    func read(_ lookup: AccessLookup, room: Int) {
        guard let bytes = receive() else { return }
        // Nothing follows the request.
        guard isReading else { return }
        input += bytes
        if case .line = state { readLine(room) }
        guard case .body(let asked) = state, input.count >= asked.length else { return }
        let body = Array(input[..<asked.length])
        input = []
        judge(asked, body, lookup)
    }

    private var isReading: Bool {
        switch state {
        case .line, .body: true
        default: false
        }
    }

    private func readLine(_ room: Int) {
        guard let asked = takeRequest() else { return }
        guard asked.account == orders.account else {
            let sentence = "This exposed socket does not show this account."
            denials.append(.init(sentence, method: asked.method))
            return refuse("policy_denied", sentence)
        }
        guard asked.length <= MessageRule.limit else {
            return refuse("invalid_request", "A message may have \(MessageRule.limit >> 20) MiB on an exposed socket.")
        }
        guard asked.length <= room else {
            return refuse("invalid_request", "This exposed socket has too many large messages. Try again later.")
        }
        state = .body(asked)
    }

    private func judge(_ asked: RelayRequest, _ body: [UInt8], _ lookup: AccessLookup) {
        do throws(RestrictedRequest.Refusal) {
            let request = try RestrictedRequest(asked, body: body, orders.rule, memory.ids, memory.parameters)
            // Only what the server itself refused. Nobody is asked to sign in from here.
            let rejected = asked.rejected.flatMap { memory.refused.contains($0) ? $0 : nil }
            ask(lookup, for: request, rejected: rejected, togglesSlash: asked.togglesSlash)
        } catch {
            switch error {
            case .rule(let refusal):
                if refusal.isDenial { denials.append(refusal) }
                refuse(refusal.isDenial ? "policy_denied" : "invalid_request", refusal.sentence)
            case .unknownSession: answer(404)
            case .noStream: answer(405)
            }
        }
    }

    private func ask(
        _ lookup: AccessLookup, for request: RestrictedRequest, rejected: String? = nil, nonce: String? = nil,
        togglesSlash: Bool
    ) {
        var question = RelayRequest(account: orders.account, method: request.method)
        question.rejected = rejected
        question.togglesSlash = togglesSlash
        state = .token(request, togglesSlash: togglesSlash)
        lookup.ask(question, for: number, nonce: nonce)
    }

    func take(_ answer: AccessLookup.Answer, _ streams: CurlStreams) {
        guard case .token(let request, let togglesSlash) = state, !isOver else { return }
        switch answer.result {
        case .failure(let refusal):
            // The daemon's sentence may name files of its machine.
            let detail =
                refusal.needsSignIn
                ? "\(orders.account) is not signed in on the machine that runs the daemon."
                : "The daemon has no token for \(orders.account) now (\(refusal.code))."
            refuse(RelayRefusal(code: refusal.code, detail: detail, needsSignIn: refusal.needsSignIn))
        case .success(let access): start(request, togglesSlash, access, streams)
        }
    }

    private func start(
        _ request: RestrictedRequest, _ togglesSlash: Bool, _ access: AccessLookup.Access, _ streams: CurlStreams
    ) {
        var access = access
        if togglesSlash { access.server.url = RedirectRule.toggled(access.server.url) ?? access.server.url }
        let server = access.server
        guard
            let transfer = start(
                request.method, request.fields, length: request.body.count, to: server.url, access, streams)
        else { return refuse("server_unreachable", "The MCP server cannot be asked.") }
        if !request.body.isEmpty { transfer.give(request.body) }
        let token = (access.authorization?.revealed() ?? "").split(separator: " ").last.map { String($0) } ?? ""
        let proof = access.proof.map { [$0.revealed()] } ?? []
        let secrets = (token.isEmpty ? [] : [token]) + proof + server.headers.map(\.1)
        let canRepeat = access.proof != nil && !isRepeated && RepeatableBody(request.body) != nil
        repeatable = canRepeat ? (request, togglesSlash) : nil
        let response = RestrictedResponse(
            ResponseRule(orders.rule, secrets: secrets), memory.ids, request: request.id, listsTools: request.listsTools
        )
        state = .streaming(
            transfer, AccessLookup.Sent(url: server.url, token: access.digest, isProved: access.proof != nil), response)
    }

    /// - Parameter room: bytes of the response that may be held.
    func pump(_ streams: CurlStreams, _ lookup: AccessLookup, room: Int) -> Bool {
        pump { collect(streams, lookup, room) }
    }

    /// True if something was taken from the server.
    private func collect(_ streams: CurlStreams, _ lookup: AccessLookup, _ room: Int) -> Bool {
        guard case .streaming(let transfer, let sent, var response) = state else { return false }
        // The only reference: what the response holds is not copied for each piece.
        state = .closing
        var hasMoved = false
        if !hasHead, let (status, fields) = transfer.response {
            let refusal = sent.isProved ? DPoPRefusal(status, fields) : nil
            if refusal == .nonce, let nonce = DPoPNonce.stated(in: fields),
                let (request, togglesSlash) = repeatable
            {
                (repeatable, isRepeated) = (nil, true)
                streams.cancel(transfer)
                ask(lookup, for: request, nonce: nonce, togglesSlash: togglesSlash)
                return false
            }
            if sent.isProved { lookup.nonces.learn(from: fields, of: sent.url) }
            hasHead = true
            hasMoved = true
            output.append(RelayReply.head(head(status, fields, sent, refusal, &response)).bytes)
        }
        while hasHead, output.count < RestrictedConversation.window {
            if output.held + response.held + min(transfer.available, RelayReply.maxPiece) > room {
                // What the program takes makes room. Nothing else does.
                guard output.isEmpty else { break }
                streams.cancel(transfer)
                send(response.giveUp())
                withheld += response.takeWithheld()
                output.append(RelayReply.end.bytes)
                return true
            }
            let piece = transfer.take(atMost: RelayReply.maxPiece)
            guard !piece.isEmpty else { break }
            hasMoved = true
            guard let passed = response.take(piece) else {
                // The bridge sees that the response is not whole.
                isOver = true
                break
            }
            send(passed)
        }
        withheld += response.takeWithheld()
        guard let outcome = transfer.outcome, transfer.isEmpty, !isOver else {
            memory.learn(from: response.takeLists())
            state = .streaming(transfer, sent, response)
            return hasMoved
        }
        switch outcome {
        case .whole:
            send(response.finish())
            withheld += response.takeWithheld()
            output.append(RelayReply.end.bytes)
        case .notSent where !hasHead: refuse("server_unreachable", "The MCP server cannot be reached.")
        case .notSent, .broken: break
        }
        memory.learn(from: response.takeLists())
        return true
    }

    private func head(
        _ status: Int, _ fields: HTTPFields, _ sent: AccessLookup.Sent, _ refusal: DPoPRefusal?,
        _ response: inout RestrictedResponse
    ) -> RelayHead {
        var head = response.head(
            status: status, contentType: fields["content-type"], session: fields["mcp-session-id"],
            retryAfter: fields["retry-after"])
        if status == 401, let refusal {
            head.proofRefusal = refusal.rawValue
        } else if status == 401 {
            if let token = sent.token { memory.noteRefused(token) }
            head.token = sent.token
        }
        head.note(fields, sent, allows: response.allows(text:))
        return head
    }

    private func send(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            output.append(RelayReply.piece(rest.prefix(RelayReply.maxPiece)).bytes)
            rest = rest.dropFirst(RelayReply.maxPiece)
        }
    }

    private func answer(_ status: Int) {
        state = .closing
        output.append(RelayReply.head(RelayHead(status: status)).bytes)
        output.append(RelayReply.end.bytes)
    }

    override func close() { state = .closing }

    override func refuse(_ code: String, _ detail: String) {
        refuse(RelayRefusal(code: code, detail: "\(detail) (exposed socket \(orders.name))"))
    }

    override func noteAllSent() {
        if case .closing = state { isOver = true }
    }

    override var transfer: StreamTransfer? {
        if case .streaming(let transfer, _, _) = state { transfer } else { nil }
    }
}
