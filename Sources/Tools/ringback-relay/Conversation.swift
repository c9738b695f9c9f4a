import CurlTransport
import Glibc
import MCPBridge
import OAuth
import RingbackBase

/// A bridge's connection: requests and their responses, one after another.
final class Conversation {
    private enum State {
        /// The line of a request is awaited.
        case line
        /// The daemon is asked for a token.
        case token(RelayRequest)
        case streaming(StreamTransfer, TokenDesk.Sent)
        /// What is left is sent, then the connection is closed.
        case closing
    }

    /// Bytes of a request that come before the token is there: while there are more, nothing is read.
    private static let window = 256 << 10
    /// Bytes that are read at a time.
    private static let piece = 65_536

    let number: Int
    let descriptor: Int32
    private var state = State.line
    private var input: [UInt8] = []
    private var output = ByteQueue()
    /// Bytes of the piece whose length is in the output, or was sent. They are sent from the transfer's own buffer, after the
    /// output.
    private var announced = 0
    private var hasHead = false
    /// Bytes of the request's body that have not come yet.
    private var unread = 0
    private var hasServed = false
    private(set) var isOver = false

    init(_ descriptor: Int32, number: Int) {
        self.descriptor = descriptor
        self.number = number
    }

    var wantsOutput: Bool { !isOver && (!output.isEmpty || announced > 0) }

    /// True if the bridge has got its response, and has not sent another request.
    var isIdle: Bool {
        if case .line = state { hasServed && input.isEmpty && output.isEmpty } else { false }
    }

    /// Input is also the way to learn that the bridge has gone.
    var wantsInput: Bool {
        switch state {
        case .line: true
        case .token: input.count < Conversation.window
        case .streaming(let transfer, _): transfer.room > 0
        case .closing: false
        }
    }

    // MARK: From the bridge

    func read(_ lines: DaemonLines) {
        var (count, failure): (Int, Int32) = (0, 0)
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: Conversation.piece) { buffer, initialized in
            count = unsafe recv(descriptor, buffer.baseAddress, buffer.count, 0)
            failure = errno
            initialized = max(0, count)
        }
        guard count > 0 else {
            if count == 0 || (failure != EAGAIN && failure != EINTR) { isOver = true }
            return
        }
        if case .streaming(let transfer, _) = state {
            unread -= count
            return transfer.give(bytes)
        }
        input += bytes
        guard case .line = state else { return }
        guard let end = input.firstIndex(of: 10) else {
            if input.count > RelayRequest.maxLine { refuse("invalid_request", "The request has no end.") }
            return
        }
        let line = Array(input[..<end])
        input = Array(input[(end + 1)...])
        guard let request = RelayRequest(parsing: line) else {
            return refuse("invalid_request", "The request is not one that ringback-relay sends.")
        }
        state = .token(request)
        lines.ask(request, for: number)
    }

    // MARK: From the daemon

    func take(_ answer: TokenDesk.Answer, _ streams: CurlStreams) {
        guard case .token(let request) = state, !isOver else { return }
        switch answer.result {
        case .failure(let refusal): refuse(refusal)
        case .success(let access): start(request, access, streams)
        }
    }

    private func start(_ asked: RelayRequest, _ access: TokenDesk.Access, _ streams: CurlStreams) {
        let server = access.server
        let url = asked.togglesSlash ? RedirectRule.toggled(server.url) ?? server.url : server.url
        var fields = HTTPFields()
        for (name, value) in server.headers { fields.set(name, value) }
        for field in asked.fields { fields.set(field.name, field.value) }
        var request = HTTPRequest(
            method: asked.method, url: url.text, fields: fields, authorization: access.authorization,
            trust: server.trust)
        request.refusesInsideAddresses = server.isOutside
        // The bridge has to know before the server may get anything: it does not send the request again from here on.
        output.append(RelayReply.sending.bytes)
        _ = flush()
        guard !isOver,
            let transfer = streams.start(
                request, length: asked.method == "POST" ? asked.length : nil, proxy: server.proxy)
        else { return refuse("server_unreachable", "\(url.place) cannot be asked: libcurl refuses the request.") }
        state = .streaming(transfer, TokenDesk.Sent(url: url, token: access.digest))
        let body = input
        input = []
        unread = asked.length - body.count
        if !body.isEmpty { transfer.give(body) }
    }

    // MARK: From the server

    /// Passes on what has come, as far as the bridge takes it. True if there was something.
    func pump() -> Bool {
        var (moves, hasMoved) = (true, false)
        while moves, !isOver {
            moves = collect()
            if flush() { moves = true }
            hasMoved = hasMoved || moves
        }
        return hasMoved
    }

    /// True if something was added to the output.
    private func collect() -> Bool {
        guard case .streaming(let transfer, let sent) = state else { return false }
        guard announced == 0 else { return false }
        let before = output.count
        if !hasHead, let response = transfer.response {
            hasHead = true
            output.append(RelayReply.head(head(response.status, response.fields, sent)).bytes)
        }
        if hasHead, transfer.available > 0 {
            announced = min(transfer.available, RelayReply.maxPiece)
            output.append(RelayReply.prefix(announced))
            return true
        }
        if let outcome = transfer.outcome, transfer.isEmpty { end(outcome) }
        return output.count > before
    }

    private func end(_ outcome: StreamTransfer.Outcome) {
        state = .closing
        switch outcome {
        case .whole:
            output.append(RelayReply.end.bytes)
            // What is left of the request's body would be read as the next request.
            if unread == 0 { (state, hasHead, hasServed) = (.line, false, true) }
        case .notSent(let error) where !hasHead: refuse("server_unreachable", Conversation.sentence(error))
        // The bridge sees that the response is not whole.
        case .notSent, .broken: break
        }
    }

    private func head(_ status: Int, _ fields: HTTPFields, _ sent: TokenDesk.Sent) -> RelayHead {
        var head = RelayHead(status: status)
        head.fields = fields.lines.filter { FieldRules.isReturned($0.name) && FieldRules.isValue($0.value) }
            .map { RelayRequest.Field($0.name, $0.value) }
        head.token = sent.token
        if let location = fields["location"] {
            head.movesSlash = RedirectRule.allows(status, from: sent.url, to: location)
        }
        if status == 403, let challenge = BearerChallenge(in: fields), challenge.demandsScopes {
            head.missingScope = challenge.scopes.joined(separator: " ")
        }
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

    // MARK: To the bridge

    private func refuse(_ code: String, _ detail: String) { refuse(RelayRefusal(code: code, detail: detail)) }

    private func refuse(_ refusal: RelayRefusal) {
        state = .closing
        output.append(RelayReply.refusal(refusal).bytes)
    }

    /// Sends what the socket takes now. True if it took something.
    private func flush() -> Bool {
        var hasMoved = false
        while !output.isEmpty || announced > 0 {
            let count = sendSome()
            guard count > 0 else {
                if count == -Int(EINTR) { continue }
                if count != -Int(EAGAIN) { isOver = true }
                return hasMoved
            }
            let ofOutput = min(count, output.count)
            output.drop(ofOutput)
            if count > ofOutput, case .streaming(let transfer, _) = state {
                transfer.drop(count - ofOutput)
                announced -= count - ofOutput
            }
            hasMoved = true
        }
        switch state {
        case .closing: isOver = true
        // A connection that only is kept needs no memory.
        case .line where hasServed: output = ByteQueue()
        default: break
        }
        return hasMoved
    }

    /// Sends the output, and what is there of the announced piece, in one call. How many bytes were taken, or the
    /// negative errno.
    private func sendSome() -> Int {
        guard announced > 0, case .streaming(let transfer, _) = state else {
            return unsafe output.waiting.withUnsafeBytes { buffer in
                let count = unsafe send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL))
                return count < 0 ? -Int(errno) : count
            }
        }
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

    /// Closes the connection, and ends the transfer.
    func end(_ streams: CurlStreams) {
        if case .streaming(let transfer, _) = state { streams.cancel(transfer) }
        close(descriptor)
    }
}
