internal import RingbackBase
internal import RingbackClient
internal import Terminal

extension Bridge {
    mutating func take(_ reply: RelayReply, of number: Int) {
        switch reply {
        case .sending: attempts[number]?.isSent = true
        case .head(let head): if let outgoing = attempts[number]?.outgoing { take(head, of: number, outgoing) }
        case .refusal(let refusal):
            if let attempt = attempts.removeValue(forKey: number) { refused(attempt.outgoing, refusal) }
        case .piece(let bytes): take(bytes, of: number)
        case .end: if let attempt = attempts.removeValue(forKey: number) { ended(attempt) }
        }
    }

    private mutating func take(_ head: RelayHead, of number: Int, _ outgoing: OutgoingRequest) {
        attempts[number]?.head = head
        var outgoing = outgoing
        switch head.status {
        case 200..<300:
            saysSignIn = true
            let type = (head.field("content-type") ?? "").lowercased()
            attempts[number]?.outgoing.failures = 0
            attempts[number]?.kind =
                type.hasPrefix("text/event-stream")
                ? .events
                : type.hasPrefix("application/json") ? .json : outgoing.message?.request == nil ? .none : .error(head)
            if outgoing.beginsSession {
                session = head.field("mcp-session-id").flatMap { FieldRules.isSessionID($0) ? $0 : nil }
            }
        case 401 where !outgoing.wasRefused && head.token != nil && head.proofRefusal == nil:
            close(number)
            outgoing.wasRefused = true
            outgoing.rejected = head.token
            launch(outgoing)
        case 307 where head.movesSlash && !togglesSlash, 308 where head.movesSlash && !togglesSlash:
            close(number)
            togglesSlash = true
            launch(outgoing)
        case 404 where outgoing.session != nil && !outgoing.wasReplayed && outgoing.mayFindSessionEnded:
            close(number)
            sessionEnded(outgoing)
        default: attempts[number]?.kind = .error(head)
        }
    }

    private mutating func take(_ bytes: ArraySlice<UInt8>, of number: Int) {
        // Nothing here holds a copy of the attempt while its body grows: that would copy the body for each piece.
        switch attempts[number]?.kind {
        case nil, .some(.none): break
        case .json, .error:
            attempts[number]?.body += bytes
            guard attempts[number]?.body.count ?? 0 > JSONLines.limit,
                let outgoing = attempts.removeValue(forKey: number)?.outgoing
            else { return }
            actions.append(.close(number))
            fail(outgoing, "The MCP server of \(account) sent a response of over \(JSONLines.limit >> 20) MiB.")
        case .events: takeEvents(bytes, of: number)
        }
    }

    private mutating func takeEvents(_ bytes: ArraySlice<UInt8>, of number: Int) {
        guard let events = try? attempts[number]?.events.append(bytes) else {
            guard let outgoing = attempts.removeValue(forKey: number)?.outgoing else { return }
            actions.append(.close(number))
            return fail(outgoing, "The MCP server of \(account) sent an event of over \(JSONLines.limit >> 20) MiB.")
        }
        // What a response changes of the attempt is seen by the next event. Most events are small and no response, so the
        // attempt is not looked up for each of them.
        var current: (outgoing: OutgoingRequest, head: RelayHead?, isAnswered: Bool)?
        for event in events where !event.bytes.isEmpty {
            if current == nil {
                attempts[number]?.outgoing.failures = 0
                current = attempts[number].map { ($0.outgoing, $0.head, $0.isAnswered) }
            }
            guard let (outgoing, head, isAnswered) = current else { return }
            if deliver(event.bytes, of: outgoing, head, isLine: event.isOneLine, isAnswered: isAnswered) {
                attempts[number]?.isAnswered = true
                closeOldStreams()
                current = nil
            } else if !outgoing.hasSpoken {
                attempts[number]?.outgoing.hasSpoken = true
                current = nil
            }
        }
    }

    /// A server should end a stream after the response. Of those that it leaves open, the oldest are closed.
    private mutating func closeOldStreams() {
        let answered = attempts.filter(\.value.isAnswered).keys
        guard answered.count > Bridge.mostAnswered, let oldest = answered.min() else { return }
        close(oldest)
    }

    /// Passes a message of the server on. True if it is the response that the request waits for.
    ///
    /// - Parameters:
    ///   - isLine: the bytes are one line with its line feed.
    ///   - isOnly: the bytes are all that the server responds, so only the response itself is passed on.
    ///   - isAnswered: the request has its response, so nothing else becomes one.
    private mutating func deliver(
        _ bytes: [UInt8], of outgoing: OutgoingRequest, _ head: RelayHead?, isLine: Bool = false, isOnly: Bool = false,
        isAnswered: Bool = false
    ) -> Bool {
        let wanted = outgoing.message?.request
        let read = try? Message(parsing: bytes, isFromServer: true)
        guard let message = read, message.isConformant else {
            if !isOnly, !isAnswered, let wanted, case .response(let id)? = read?.kind, id == wanted || id == .none {
                failed(outgoing, head ?? RelayHead(status: 200), bytes)
                return true
            }
            if !isOnly {
                actions.append(.note("The MCP server of \(account) sent something that is not a JSON-RPC message."))
            }
            return false
        }
        // An error about a request whose id the server could not read: it got this one only.
        if !isAnswered, let wanted, case .response(.none) = message.kind, let error = message.error(for: wanted) {
            return deliver(error, of: outgoing, head)
        }
        guard case .response(let id) = message.kind, id == wanted else {
            // A replay was not asked for by the client.
            if !outgoing.isReplay, !isOnly { write(bytes, isLine: isLine) }
            return false
        }
        if outgoing.beginsSession, !message.isError { version = message.negotiatedVersion }
        guard !outgoing.isReplay else {
            message.isError ? replayFailed() : replayed()
            return true
        }
        if let asked = outgoing.message, asked.method == "tools/list", asked.statesVersion {
            parameters.learn(from: bytes)
        }
        if !outgoing.isCancelled { write(bytes, isLine: isLine) }
        if outgoing.beginsSession { openGate() }
        return true
    }

    private mutating func ended(_ attempt: Attempt) {
        let outgoing = attempt.outgoing
        switch attempt.kind {
        case .json where outgoing.message?.request == nil && !outgoing.isStream:
            // What is no message, such as an empty object, only says that the notification was taken.
            if (try? Message(parsing: attempt.body)) != nil { _ = deliver(attempt.body, of: outgoing, attempt.head) }
            accepted(outgoing)
        case .json where outgoing.isStream: unanswered(attempt)
        case .json:
            guard !deliver(attempt.body, of: outgoing, attempt.head, isOnly: true) else { return }
            failed(outgoing, attempt.head ?? RelayHead(status: 200), attempt.body)
        case .events where outgoing.message?.request == nil && !outgoing.isStream: accepted(outgoing)
        case .events: if !attempt.isAnswered { unanswered(attempt) }
        case .error(let head): failed(outgoing, head, attempt.body)
        case .none: accepted(outgoing)
        }
    }

    /// The server took a message that has no response.
    private mutating func accepted(_ outgoing: OutgoingRequest) {
        switch outgoing.purpose {
        case .message(let message) where message.isConfirmation, .replayEnd(let message) where message.isConfirmation:
            openGate()
            openStream()
        default: break
        }
    }

    /// The stream ended, or the connection broke, before the response was there.
    mutating func broke(_ attempt: Attempt) {
        if case .error(let head) = attempt.kind { return failed(attempt.outgoing, head, attempt.body) }
        unanswered(attempt)
    }

    private mutating func unanswered(_ attempt: Attempt) {
        var outgoing = attempt.outgoing
        guard !attempt.isAnswered else { return }
        if case .end = outgoing.purpose { return }
        // No response is written, but others may wait for it.
        guard !outgoing.isCancelled else { return giveUp(outgoing) }
        outgoing.failures += 1
        let lastID = attempt.events.lastID ?? outgoing.lastEventID
        let pause = Bridge.pause(attempt.events.retry, outgoing.failures)
        if outgoing.isStream {
            outgoing.lastEventID = lastID.flatMap { FieldRules.isValue($0) && !$0.isEmpty ? $0 : nil }
            return launch(outgoing, after: pause)
        }
        guard outgoing.failures < Bridge.mostFailures else { return giveUp(outgoing) }
        // The relay had not begun to send it.
        guard attempt.isSent else { return launch(outgoing, after: .milliseconds(100) * outgoing.failures) }
        guard let message = outgoing.message else { return giveUp(outgoing) }
        if message.request != nil, !message.statesVersion, let lastID, !lastID.isEmpty, FieldRules.isValue(lastID) {
            outgoing.lastEventID = lastID
            return launch(outgoing, after: pause)
        }
        guard message.isRepeatable, !outgoing.wasRepeated, !outgoing.hasSpoken else { return giveUp(outgoing) }
        outgoing.wasRepeated = true
        launch(outgoing, after: pause)
    }

    mutating func giveUp(_ outgoing: OutgoingRequest) {
        let sentence = "The connection to the MCP server of \(account) broke before its response."
        fail(outgoing, "\(sentence) The request may have been carried out.")
    }

    /// The wait before a stream is connected again: what the server asks for, else a second, longer after failures.
    private static func pause(_ retry: Int?, _ failures: Int) -> Duration {
        let base = retry.map { Duration.milliseconds(min($0, 60_000)) } ?? .seconds(1)
        return min(base * (1 << min(max(failures - 1, 0), 5)), .seconds(60))
    }

    /// The response is an HTTP error, or no response to the request.
    private mutating func failed(_ outgoing: OutgoingRequest, _ head: RelayHead, _ body: [UInt8]) {
        // A server without a standing stream says 405. Others refuse it in other ways: the session goes on without.
        if outgoing.isStream { return }
        if head.status == 401, let reason = head.proofRefusal {
            return fail(
                outgoing, "The MCP server of \(account) refuses the proof for its token (\(reason)). Try again.",
                code: "proof_refused")
        }
        if head.status == 401, head.token == nil {
            return fail(
                outgoing, "The MCP server of \(account) demands a token, and the account has sign_in = false.",
                code: "sign_in_required")
        }
        if head.status == 401 {
            // The account holds a session, so a sign-in has to be asked for again.
            return fail(
                outgoing, "The MCP server of \(account) refuses its token.", code: "token_refused",
                command: signIn(nil, true))
        }
        if let scope = head.missingScope {
            let scopes = Bridge.scopes(scope)
            return fail(
                outgoing, "The MCP server of \(account) wants more scopes for this.", code: "insufficient_scope",
                command: signIn(scopes, scopes == nil))
        }
        if outgoing.lastEventID != nil { return giveUp(outgoing) }
        let message = try? Message(parsing: body, isFromServer: true)
        if let id = outgoing.request, let message, message.isConformant, case .response(let named) = message.kind {
            if named == id { return answer(outgoing, body) }
            if named == .none, let error = message.error(for: id) { return answer(outgoing, error) }
        }
        var sentence = "The MCP server of \(account) responded with HTTP \(head.status)"
        if (200..<300).contains(head.status) { sentence += ", and its body is no JSON-RPC response to the request" }
        sentence += ServerReason.text(of: body).map { ": \($0)" } ?? ""
        if !sentence.hasSuffix(".") { sentence += "." }
        var data: JSONObject = ["code": "http_error", "status": head.status]
        if let wait = head.field("retry-after") {
            let seconds = wait.utf8.count <= 9 && wait.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(wait) : nil
            sentence +=
                seconds.map { " Try again in \($0) s." } ?? " Try again after \(Sanitizer.line(wait, limit: 64))."
            data["retry_after"] = seconds.map { .integer($0) } ?? .string(wait)
        }
        fail(outgoing, sentence, number: message?.errorCode, data)
    }

    /// The scopes of a challenge that can be requested (RFC 6749, 3.3); nil if there are none, or too many to be typed.
    private static func scopes(_ text: String) -> String? {
        let scopes = text.split(separator: " ").filter { scope in
            scope.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
        }.joined(separator: " ")
        return (1...2_048).contains(scopes.utf8.count) ? scopes : nil
    }

    /// There is no response to an attempt, and the relay says why.
    private mutating func refused(_ outgoing: OutgoingRequest, _ refusal: RelayRefusal) {
        var outgoing = outgoing
        if outgoing.isStream {
            outgoing.failures += 1
            return launch(outgoing, after: Bridge.pause(nil, outgoing.failures))
        }
        let isLate = outgoing.waitsForSignIn && ["timeout", "timed_out"].contains(refusal.code)
        guard refusal.needsSignIn || isLate else { return fail(outgoing, refusal.detail, code: refusal.code) }
        let sentence = refusal.needsSignIn ? refusal.detail : "\(account) is not signed in."
        // After a refused token, a session is still held that gives no other one.
        let command = signIn(nil, outgoing.rejected != nil)
        if saysSignIn { actions.append(.note(advised(sentence, command))) }
        saysSignIn = false
        if outgoing.message?.method == "initialize", !outgoing.waitsForSignIn {
            outgoing.waitsForSignIn = true
            return launch(outgoing)
        }
        fail(outgoing, sentence, code: "sign_in_required", command: command)
    }

    private func advised(_ sentence: String, _ command: ShownCommand) -> String {
        "\(sentence) \(intro) \(shown: command)"
    }

    /// - Parameters:
    ///   - command: what helps.
    ///   - isNamed: the sentence names it already.
    mutating func fail(
        _ outgoing: OutgoingRequest, _ sentence: String, code: String? = nil, command: ShownCommand? = nil,
        isNamed: Bool = false
    ) {
        let text = command.map { isNamed ? sentence : advised(sentence, $0) } ?? sentence
        fail(outgoing, text, number: nil, ["code": code, "command": command?.description])
    }

    /// The request gets no response from the server: the client gets an error in its place.
    ///
    /// - Parameter number: the error's code, if the server stated one.
    private mutating func fail(_ outgoing: OutgoingRequest, _ sentence: String, number: Int?, _ data: JSONObject) {
        guard let id = outgoing.request else {
            if !outgoing.isStream, !outgoing.isCancelled, outgoing.message != nil { actions.append(.note(sentence)) }
            switch outgoing.purpose {
            case .replay: replayFailed()
            case .replayEnd: openGate()
            case .message(let message) where message.isConfirmation: openGate()
            default: break
            }
            return
        }
        answer(outgoing, ErrorResponse.bytes(id, code: number ?? -32_000, message: sentence, data: data))
    }

    private mutating func answer(_ outgoing: OutgoingRequest, _ bytes: [UInt8]) {
        if !outgoing.isCancelled { write(bytes) }
        if outgoing.beginsSession, gate == .initialize { openGate() }
    }
}
