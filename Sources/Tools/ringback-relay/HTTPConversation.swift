import CurlTransport
import Glibc
import LocalHTTP
import MCPBridge
import OAuth
import RingbackBase

/// A connection of a relayed program: requests and their responses, one after another.
final class HTTPConversation: RelayConnection {
    private enum State {
        /// The head of a request is awaited.
        case head
        /// The daemon is asked for the credentials.
        case credentials(RelayedRequest)
        /// The response is nil until its head is there.
        case streaming(StreamTransfer, RelayedRequest, RelayedResponse?)
        /// What is left is sent, and what still comes is dropped: if a socket is closed with bytes that were not read, the
        /// client may lose the response.
        case closing
    }

    /// Bytes that wait in each direction, beside those of the transfer.
    private static let window = 64 << 10
    /// How long a client may be silent between two requests, and before it closes a connection whose response it has got.
    private static let patience = Duration.seconds(75)
    private static let closingPatience = Duration.seconds(2)

    let relay: HTTPRelayOrders.Relay
    private var state = State.head
    private var searched = 0
    private var body = RelayedBody(.none)
    private var mask: SecretMask?
    /// The SHA-256 of the token that was sent.
    private var digest = ""
    /// The request was sent with a proof.
    private var isProved = false
    /// Of a request with a proof that can be sent once more.
    private var repeatable: RepeatableBody?
    /// What is to be sent again, in front of what still comes.
    private var resent: [UInt8]?
    /// The client has ended its direction. It may still wait for the response.
    private var hasInputEnded = false
    private var isShut = false
    private var since = ContinuousClock.now

    init(_ descriptor: Int32, number: Int, _ relay: HTTPRelayOrders.Relay) {
        self.relay = relay
        super.init(descriptor, number: number)
    }

    /// True between two requests.
    var isIdle: Bool {
        if case .head = state { input.isEmpty && output.isEmpty } else { false }
    }

    /// Input is also the way to learn that the client has gone.
    var wantsInput: Bool {
        guard !hasInputEnded else { return false }
        return if case .closing = state { true } else { input.count < HTTPConversation.window }
    }

    var isLate: Bool {
        switch state {
        case .head: ContinuousClock.now - since > HTTPConversation.patience
        case .closing: isShut && ContinuousClock.now - since > HTTPConversation.closingPatience
        case .credentials, .streaming: false
        }
    }

    func read() {
        // After the end of the input only a connection that is broken has some.
        guard !hasInputEnded else { return isOver = true }
        guard let bytes = receive() else { return }
        if case .closing = state { return }
        input += bytes
    }

    override func noteInputEnd() {
        hasInputEnded = true
        if isShut { isOver = true }
    }

    /// Does what needs no waiting. True if something has moved.
    func pump(_ server: HTTPRelayServer) -> Bool { pump { advance(server) } }

    private func advance(_ server: HTTPRelayServer) -> Bool {
        switch state {
        case .head: takeHead(server) || endUnasked()
        case .streaming(let transfer, let request, let response):
            // Each of them may move.
            [sendBody(transfer), collect(transfer, request, response, server)].contains(true)
        case .credentials, .closing: false
        }
    }

    /// True if the client has ended its direction and has no further request.
    private func endUnasked() -> Bool {
        guard hasInputEnded else { return false }
        close()
        return true
    }

    private func takeHead(_ server: HTTPRelayServer) -> Bool {
        guard !input.isEmpty else { return false }
        do throws(RelayedRequest.Refusal) {
            guard let request = try RelayedRequest.take(from: &input, searched: &searched, for: relay.origin) else {
                return false
            }
            // The owner of a connection whose client has ended its direction is no longer found, and was checked at first.
            if relay.checksOwner, let owner = SocketOwner.uid(over: descriptor), !HTTPRelayServer.isOwn(owner) {
                throw RelayedRequest.Refusal(403, "The relay serves another user.", code: "policy_denied")
            }
            try server.ask(for: self, request)
            state = .credentials(request)
            body = RelayedBody(request.body)
        } catch {
            refuse(error)
        }
        return true
    }

    func take(_ answer: Questions<OriginAccess>.Answer, _ server: HTTPRelayServer) {
        guard case .credentials(let request) = state, !isOver else { return }
        switch answer.result {
        case .failure(let refusal): refuse(RelayedRequest.Refusal(refusal))
        case .success(let access): start(request, access, server)
        }
    }

    private func start(_ request: RelayedRequest, _ access: OriginAccess, _ server: HTTPRelayServer) {
        var fields = request.fields
        for (name, _) in access.fields { fields.remove(name) }
        var asked = HTTPRequest(method: request.method, url: request.url.text, fields: fields)
        asked.secretFields = access.fields
        let length: Int? =
            switch request.body {
            case .none: nil
            case .length(let count): count
            case .chunked: StreamTransfer.unknownLength
            }
        guard let transfer = server.streams.start(asked, length: length) else {
            return refuse(.init(400, "The request has a header field or a URL that cannot be sent."))
        }
        (mask, digest, isProved) = (access.mask, access.digest, access.isProved)
        state = .streaming(transfer, request, nil)
        guard let resent else {
            repeatable = isProved ? RepeatableBody([]) : nil
            if request.expectsContinue, !body.isOver { output.append(RelayedResponse.proceed) }
            return
        }
        self.resent = nil
        if !resent.isEmpty { transfer.give(resent) }
        if body.isOver { transfer.endBody() }
    }

    private func sendBody(_ transfer: StreamTransfer) -> Bool {
        guard !body.isOver, transfer.room > 0, !input.isEmpty || hasInputEnded else { return false }
        do throws(RelayedRequest.Refusal) {
            let bytes = try body.take(from: &input, atMost: transfer.room)
            if !bytes.isEmpty {
                transfer.give(bytes)
                if repeatable?.add(bytes) == false { repeatable = nil }
            }
            if body.isOver { transfer.endBody() }
            // The server sees that the request is not whole.
            if bytes.isEmpty, !body.isOver, hasInputEnded { isOver = true }
            return !bytes.isEmpty || body.isOver
        } catch {
            // The server has got a part of the request. It sees that it is not whole.
            if hasHead { isOver = true } else { refuse(error) }
            return true
        }
    }

    private func collect(
        _ transfer: StreamTransfer, _ request: RelayedRequest, _ begun: RelayedResponse?, _ server: HTTPRelayServer
    ) -> Bool {
        guard case .streaming = state, var mask else { return false }
        var hasMoved = false
        var begun = begun
        if begun == nil, let (status, fields) = transfer.response {
            let refusal = isProved ? DPoPRefusal(status, fields) : nil
            if refusal == .nonce, let nonce = DPoPNonce.stated(in: fields), let body = repeatable {
                server.streams.cancel(transfer)
                sendAgain(request, body, nonce, server)
                return true
            }
            if isProved { server.nonces.learn(from: fields, of: request.url) }
            repeatable = nil
            // What is wrong with a proof is not wrong with the token.
            if status == 401, refusal == nil { server.noteRefused(digest, at: relay) }
            do throws(RelayedRequest.Refusal) {
                let response = try RelayedResponse(
                    status, fields, isDecoded: transfer.isDecoded, to: request, of: relay.origin, mask)
                output.append(response.head)
                begun = response
            } catch {
                refuse(error)
                return true
            }
            (hasHead, hasMoved) = (true, true)
            state = .streaming(transfer, request, begun)
        }
        guard let response = begun else {
            guard let outcome = transfer.outcome else { return hasMoved }
            refuse(HTTPConversation.refusal(outcome, relay.origin))
            return true
        }
        // The only reference: what is held is not copied for each piece.
        self.mask = nil
        while output.count < HTTPConversation.window {
            let piece = transfer.take(atMost: HTTPConversation.window)
            guard !piece.isEmpty else { break }
            hasMoved = true
            output.append(response.piece(mask.pass(piece)))
        }
        self.mask = mask
        guard let outcome = transfer.outcome, transfer.isEmpty else { return hasMoved }
        end(outcome, request, response)
        return true
    }

    /// The server has taken nothing of it: it wants another nonce.
    private func sendAgain(
        _ request: RelayedRequest, _ body: RepeatableBody, _ nonce: String, _ server: HTTPRelayServer
    ) {
        (resent, repeatable, mask) = (body.bytes, nil, nil)
        state = .credentials(request)
        do throws(RelayedRequest.Refusal) {
            try server.ask(for: self, request, nonce: nonce)
        } catch {
            refuse(error)
        }
    }

    private func end(_ outcome: StreamTransfer.Outcome, _ request: RelayedRequest, _ response: RelayedResponse) {
        // The client sees that the response is not whole.
        guard case .whole = outcome else { return close() }
        output.append(response.piece(mask?.finish() ?? []))
        output.append(response.end)
        mask = nil
        // What is left of the request's body would be read as the next request.
        guard request.keepsAlive, response.keepsAlive, body.isOver else { return close() }
        (state, hasHead, searched, since) = (.head, false, 0, .now)
    }

    private static func refusal(_ outcome: StreamTransfer.Outcome, _ origin: RelayedOrigin) -> RelayedRequest.Refusal {
        let code = "server_unreachable"
        let error: HTTPClientError
        switch outcome {
        case .whole: return .init(502, "\(origin.url.place) sent no response.", code: code)
        case .notSent(let found), .broken(let found): error = found
        }
        return switch error {
        case .unreachable(let host, let reason, _): .init(502, "\(host) cannot be reached: \(reason).", code: code)
        case .untrusted(let host, let reason): .init(502, "\(host) is not trusted: \(reason).", code: code)
        case .timedOut(let host): .init(504, "\(host) did not accept a connection in time.", code: code)
        default: .init(502, "\(origin.url.place) sent no response that is valid.", code: code)
        }
    }

    private func refuse(_ refusal: RelayedRequest.Refusal) {
        output.append(RelayedResponse.refusal(refusal))
        close()
    }

    override func close() {
        if let transfer { abandoned = transfer }
        (state, since, mask, repeatable, resent) = (.closing, .now, nil, nil, nil)
        input = []
    }

    /// A transfer whose response nobody gets.
    private var abandoned: StreamTransfer?

    override var transfer: StreamTransfer? {
        if case .streaming(let transfer, _, _) = state { transfer } else { abandoned }
    }

    override func noteAllSent() {
        switch state {
        case .closing where !isShut:
            isShut = true
            since = .now
            shutdown(descriptor, Int32(SHUT_WR))
            if hasInputEnded { isOver = true }
        // A connection that only is kept needs no memory.
        case .head where input.isEmpty: output = ByteQueue()
        default: break
        }
    }
}

extension RelayedRequest.Refusal {
    /// What the daemon refused. Clients send a request with the status 5xx again, which helps where the daemon or the
    /// provider is away for a while, and not where somebody has to do something.
    init(_ refusal: RelayRefusal) {
        let passes = [
            "no_daemon", "timed_out", "timeout", "provider_unreachable", "vault_unreachable", "shutting_down",
        ]
        self.init(passes.contains(refusal.code) ? 503 : 403, refusal.detail, code: refusal.code)
    }
}
