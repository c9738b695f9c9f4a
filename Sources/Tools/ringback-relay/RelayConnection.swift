import CurlTransport
import Glibc
import MCPBridge
import OAuth
import RingbackBase

/// A connection to the relay, over which requests come and their responses go. The bytes of a response come from a
/// transfer of ``CurlStreams``.
class RelayConnection {
    let number: Int
    let descriptor: Int32
    var input: [UInt8] = []
    var output = ByteQueue()
    var hasHead = false
    var isOver = false

    init(_ descriptor: Int32, number: Int) {
        self.descriptor = descriptor
        self.number = number
    }

    /// The bytes that have come; nil if there are none.
    func receive() -> [UInt8]? {
        let (bytes, count, failure) = Descriptor.receive(descriptor, atMost: 65_536)
        if count > 0 { return bytes }
        if count == 0 {
            noteInputEnd()
        } else if failure != EAGAIN, failure != EINTR {
            isOver = true
        }
        return nil
    }

    /// The client sends nothing more.
    func noteInputEnd() { isOver = true }

    /// Passes on what has come, as far as the other end takes it. True if there was something.
    ///
    /// - Parameter collect: adds to the output; false if there was nothing to add.
    func pump(_ collect: () -> Bool) -> Bool {
        var (moves, hasMoved) = (true, false)
        while moves, !isOver {
            moves = collect()
            if flush() { moves = true }
            hasMoved = hasMoved || moves
        }
        return hasMoved
    }

    /// Ends the connection once the output is sent. Subclasses change their state.
    func close() {}

    var hasOutput: Bool { !output.isEmpty }
    final var wantsOutput: Bool { !isOver && hasOutput }

    /// Sends what the socket takes now. True if it took something.
    func flush() -> Bool {
        var hasMoved = false
        while hasOutput {
            let count = sendSome()
            guard count > 0 else {
                if count == -Int(EINTR) { continue }
                if count != -Int(EAGAIN) { isOver = true }
                return hasMoved
            }
            drop(count)
            hasMoved = true
        }
        noteAllSent()
        return hasMoved
    }

    /// Sends some of the output. How many bytes were taken, or the negative errno.
    func sendSome() -> Int {
        unsafe output.waiting.withUnsafeBytes { buffer in
            let count = unsafe send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL))
            return count < 0 ? -Int(errno) : count
        }
    }

    func drop(_ count: Int) { output.drop(count) }
    func noteAllSent() {}

    /// Closes the connection, and ends the transfer.
    final func end(_ streams: CurlStreams) {
        if let transfer { streams.cancel(transfer) }
        Glibc.close(descriptor)
    }

    var transfer: StreamTransfer? { nil }
}

/// A connection in the form that bridges speak (``RelayRequest``, ``RelayReply``).
class BridgeConnection: RelayConnection {
    /// Takes the line of a request from the input. Nil if the line is not complete or no request, which is refused.
    func takeRequest() -> RelayRequest? {
        guard let end = input.firstIndex(of: 10) else {
            if input.count > RelayRequest.maxLine { refuse("invalid_request", "The request has no end.") }
            return nil
        }
        let request = RelayRequest(parsing: Array(input[..<end]))
        input.removeFirst(end + 1)
        if request == nil { refuse("invalid_request", "The request is not one that ringback-relay sends.") }
        return request
    }

    /// Begins to send a request to the server. Nil if that cannot be done.
    func start(
        _ method: String, _ fields: [HTTPFields.Field], length: Int, to url: WebURL, _ access: AccessLookup.Access,
        _ streams: CurlStreams
    ) -> StreamTransfer? {
        let server = access.server
        var all = HTTPFields()
        for (name, value) in server.headers { all.set(name, value) }
        for field in fields { all.set(field.name, field.value) }
        var request = HTTPRequest(
            method: method, url: url.text, fields: all, authorization: access.authorization, trust: server.trust)
        request.refusesInsideAddresses = server.isOutside
        if let proof = access.proof { request.prove(by: proof) }
        // The bridge has to know before the server may get anything: it does not send the request again from here on.
        output.append(RelayReply.sending.bytes)
        _ = flush()
        return isOver ? nil : streams.start(request, length: method == "POST" ? length : nil, proxy: server.proxy)
    }

    func refuse(_ refusal: RelayRefusal) {
        close()
        output.append(RelayReply.refusal(refusal).bytes)
    }

    func refuse(_ code: String, _ detail: String) { refuse(RelayRefusal(code: code, detail: detail)) }
}

extension RelayHead {
    /// Notes a redirect by which the request may be sent again, and the scopes that the token lacks.
    ///
    /// - Parameter allows: false for a text that must not be passed on.
    mutating func note(_ fields: HTTPFields, _ sent: AccessLookup.Sent, allows: (String) -> Bool = { _ in true }) {
        if let location = fields["location"] { movesSlash = RedirectRule.allows(status, from: sent.url, to: location) }
        if status == 403, let challenge = BearerChallenge(in: fields), challenge.demandsScopes {
            let scope = challenge.scopes.joined(separator: " ")
            missingScope = allows(scope) ? scope : ""
        }
    }
}
