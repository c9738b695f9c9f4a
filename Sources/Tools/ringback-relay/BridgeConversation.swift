import CurlTransport
import Glibc
import MCPBridge
import OAuth
import RingbackBase

/// A bridge's connection: requests and their responses, one after another.
final class BridgeConversation: BridgeConnection {
    private enum State {
        /// The line of a request is awaited.
        case line
        case token(RelayRequest)
        case streaming(StreamTransfer, AccessLookup.Sent)
        /// What is left is sent, then the connection is closed.
        case closing
    }

    /// Bytes of a request that come before the token is there: while there are more, nothing is read.
    private static let window = 256 << 10
    /// The bridge's process.
    private let client: Int32
    private var state = State.line
    /// Bytes of the piece whose length is in the output, or was sent. They are sent from the transfer's own buffer.
    private var announced = 0
    /// Bytes of the request's body that have not come yet.
    private var unread = 0
    /// The request with a proof that can be sent once more; nil if there is none.
    private var repeatable: (request: RelayRequest, body: RepeatableBody)?
    private var isRepeated = false
    private var hasServed = false

    init(_ descriptor: Int32, number: Int, client: Int32) {
        self.client = client
        super.init(descriptor, number: number)
    }

    /// True if the bridge has got its response, and has not sent another request.
    var isIdle: Bool {
        if case .line = state { hasServed && input.isEmpty && output.isEmpty } else { false }
    }

    /// Input is also the way to learn that the bridge has gone.
    var wantsInput: Bool {
        switch state {
        case .line: true
        case .token: input.count < BridgeConversation.window
        case .streaming(let transfer, _): transfer.room > 0
        case .closing: false
        }
    }

    func read(_ lines: DaemonLines) {
        guard let bytes = receive() else { return }
        if case .streaming(let transfer, _) = state {
            unread -= bytes.count
            if repeatable?.body.add(bytes) == false { repeatable = nil }
            return transfer.give(bytes)
        }
        input += bytes
        guard case .line = state, let request = takeRequest() else { return }
        isRepeated = false
        state = .token(request)
        lines.ask(request, for: number, of: client)
    }

    func take(_ answer: AccessLookup.Answer, _ streams: CurlStreams) {
        guard case .token(let request) = state, !isOver else { return }
        switch answer.result {
        case .failure(let refusal): refuse(refusal)
        case .success(let access): start(request, access, streams)
        }
    }

    private func start(_ asked: RelayRequest, _ access: AccessLookup.Access, _ streams: CurlStreams) {
        let url = asked.url(at: access.server.url)
        guard let transfer = start(asked.method, asked.fields, length: asked.length, to: url, access, streams) else {
            return refuse("server_unreachable", "\(url.place) cannot be asked: libcurl refuses the request.")
        }
        let isProved = access.proof != nil
        state = .streaming(transfer, AccessLookup.Sent(url: url, token: access.digest, isProved: isProved))
        let body = input
        input = []
        repeatable = isProved && !isRepeated ? RepeatableBody(body).map { (asked, $0) } : nil
        unread = asked.length - body.count
        if !body.isEmpty { transfer.give(body) }
    }

    func pump(_ streams: CurlStreams, _ lines: DaemonLines) -> Bool { pump { collect(streams, lines) } }

    /// True if something was added to the output.
    private func collect(_ streams: CurlStreams, _ lines: DaemonLines) -> Bool {
        guard case .streaming(let transfer, let sent) = state else { return false }
        guard announced == 0 else { return false }
        let before = output.count
        if !hasHead, let response = transfer.response {
            var refusal: DPoPRefusal?
            if sent.isProved {
                refusal = DPoPRefusal(response.status, response.fields)
                if refusal == .nonce, let nonce = DPoPNonce.stated(in: response.fields),
                    let (request, body) = repeatable
                {
                    streams.cancel(transfer)
                    sendAgain(request, body, nonce, lines)
                    return false
                }
                lines.lookup.nonces.learn(from: response.fields, of: sent.url)
            }
            (hasHead, repeatable) = (true, nil)
            output.append(RelayReply.head(head(response.status, response.fields, sent, refusal)).bytes)
        }
        if hasHead, transfer.available > 0 {
            announced = min(transfer.available, RelayReply.maxPiece)
            output.append(RelayReply.prefix(announced))
            return true
        }
        if let outcome = transfer.outcome, transfer.isEmpty { end(outcome) }
        return output.count > before
    }

    /// The server has taken nothing of it: it wants another nonce.
    private func sendAgain(
        _ request: RelayRequest, _ body: RepeatableBody, _ nonce: String, _ lines: DaemonLines
    ) {
        (repeatable, isRepeated) = (nil, true)
        input = body.bytes
        state = .token(request)
        lines.ask(request, for: number, of: client, nonce: nonce)
    }

    private func end(_ outcome: StreamTransfer.Outcome) {
        state = .closing
        switch outcome {
        case .whole:
            output.append(RelayReply.end.bytes)
            // What is left of the request's body would be read as the next request.
            if unread == 0 { (state, hasHead, hasServed) = (.line, false, true) }
        case .notSent(let error) where !hasHead: refuse("server_unreachable", BridgeConversation.sentence(error))
        // The bridge sees that the response is not whole.
        case .notSent, .broken: break
        }
    }

    private func head(
        _ status: Int, _ fields: HTTPFields, _ sent: AccessLookup.Sent, _ refusal: DPoPRefusal?
    ) -> RelayHead {
        var head = RelayHead(status: status)
        head.fields = fields.lines.filter { FieldRules.isReturned($0.name) && FieldRules.isValue($0.value) }
        head.token = sent.token
        head.proofRefusal = refusal?.rawValue
        head.note(fields, sent)
        return head
    }

    private static func sentence(_ error: HTTPClientError) -> String {
        switch error {
        case .unreachable(let host, let reason, _): "\(host) cannot be reached: \(reason)."
        case .untrusted(let host, let reason): "\(host) is not trusted: \(reason)."
        case .timedOut(let host): "\(host) did not accept a connection in time."
        default: "The MCP server cannot be reached."
        }
    }

    override func close() { state = .closing }
    override var hasOutput: Bool { !output.isEmpty || announced > 0 }

    override var transfer: StreamTransfer? {
        if case .streaming(let transfer, _) = state { transfer } else { nil }
    }

    override func drop(_ count: Int) {
        let ofOutput = min(count, output.count)
        output.drop(ofOutput)
        guard count > ofOutput, let transfer else { return }
        transfer.drop(count - ofOutput)
        announced -= count - ofOutput
    }

    override func noteAllSent() {
        switch state {
        case .closing: isOver = true
        // A connection that only is kept needs no memory.
        case .line where hasServed: output = ByteQueue()
        default: break
        }
    }

    /// Sends the output, and what is there of the announced piece, in one call.
    override func sendSome() -> Int {
        guard announced > 0, let transfer else { return super.sendSome() }
        return unsafe output.waiting.withUnsafeBytes { first in
            unsafe transfer.withFirst(announced) { second in
                var parts = unsafe [
                    iovec(iov_base: UnsafeMutableRawPointer(mutating: first.baseAddress), iov_len: first.count),
                    iovec(iov_base: UnsafeMutableRawPointer(mutating: second.baseAddress), iov_len: second.count),
                ]
                return unsafe parts.withUnsafeMutableBufferPointer { parts in
                    var message = unsafe msghdr()
                    unsafe message.msg_iov = parts.baseAddress
                    unsafe message.msg_iovlen = parts.count
                    let count = unsafe sendmsg(descriptor, &message, Int32(MSG_NOSIGNAL))
                    return count < 0 ? -Int(errno) : count
                }
            }
        }
    }
}
