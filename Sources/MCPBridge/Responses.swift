internal import RingbackClient

// What comes back from the server.

extension Bridge {
    mutating func take(_ reply: RelayReply, of number: Int) {
        switch reply {
        case .sending: attempts[number]?.isSent = true
        case .head(let head): if let errand = attempts[number]?.errand { take(head, of: number, errand) }
        case .refusal(let refusal):
            if let attempt = attempts.removeValue(forKey: number) { refused(attempt.errand, refusal) }
        case .piece(let bytes): take(bytes, of: number)
        case .end: if let attempt = attempts.removeValue(forKey: number) { ended(attempt) }
        }
    }

    private mutating func take(_ head: RelayHead, of number: Int, _ errand: Errand) {
        attempts[number]?.head = head
        var errand = errand
        switch head.status {
        case 200..<300:
            saysSignIn = true
            let type = (head.field("content-type") ?? "").lowercased()
            attempts[number]?.errand.failures = 0
            attempts[number]?.kind =
                type.hasPrefix("text/event-stream") ? .events : type.hasPrefix("application/json") ? .json : .none
            if errand.beginsSession {
                session = head.field("mcp-session-id").flatMap { FieldRules.isSessionID($0) ? $0 : nil }
            }
        case 401 where !errand.wasRefused && head.token != nil:
            attempts[number] = nil
            actions.append(.close(number))
            errand.wasRefused = true
            errand.rejected = head.token
            launch(errand)
        case 307 where head.movesSlash && !togglesSlash, 308 where head.movesSlash && !togglesSlash:
            attempts[number] = nil
            actions.append(.close(number))
            togglesSlash = true
            launch(errand)
        case 404 where errand.session != nil && errand.message != nil && !errand.wasReplayed:
            attempts[number] = nil
            actions.append(.close(number))
            sessionEnded(errand)
        default: attempts[number]?.kind = .error(head)
        }
    }

    private mutating func take(_ bytes: [UInt8], of number: Int) {
        // Nothing here holds a copy of the attempt while its body grows: that would copy the body for each piece.
        guard let kind = attempts[number]?.kind, let errand = attempts[number]?.errand else { return }
        switch kind {
        case .none: break
        case .json, .error:
            attempts[number]?.body += bytes
            guard attempts[number]?.body.count ?? 0 > JSONLines.limit else { return }
            attempts[number] = nil
            actions.append(.close(number))
            fail(errand, "The MCP server of \(account) sent a response of over \(JSONLines.limit >> 20) MiB.")
        case .events: takeEvents(bytes, of: number, errand)
        }
    }

    private mutating func takeEvents(_ bytes: [UInt8], of number: Int, _ errand: Errand) {
        guard let events = try? attempts[number]?.events.append(bytes) else {
            attempts[number] = nil
            actions.append(.close(number))
            return fail(errand, "The MCP server of \(account) sent an event of over \(JSONLines.limit >> 20) MiB.")
        }
        for event in events where !event.data.isEmpty {
            attempts[number]?.errand.failures = 0
            guard let current = attempts[number]?.errand else { return }
            if deliver(Array(event.data.utf8), of: current) {
                attempts[number]?.isAnswered = true
                closeOldStreams()
            } else {
                attempts[number]?.errand.hasSpoken = true
            }
        }
    }

    /// A server should end a stream after the response. Of those that it leaves open, the oldest are closed.
    private mutating func closeOldStreams() {
        let answered = attempts.filter(\.value.isAnswered).keys
        guard answered.count > Bridge.mostAnswered, let oldest = answered.min() else { return }
        attempts[oldest] = nil
        actions.append(.close(oldest))
    }

    /// Passes a message of the server on. True if it is the response that the errand waits for.
    private mutating func deliver(_ bytes: [UInt8], of errand: Errand) -> Bool {
        guard let message = try? Message(parsing: bytes) else {
            actions.append(.note("The MCP server of \(account) sent something that is not a JSON-RPC message."))
            return false
        }
        guard case .response(let id) = message.kind, let wanted = errand.message?.request, id == wanted else {
            // A replay was not asked for by the client.
            if !errand.isReplay { write(bytes) }
            return false
        }
        if errand.beginsSession, !message.isError { version = message.negotiatedVersion }
        guard !errand.isReplay else {
            message.isError ? replayFailed() : replayed()
            return true
        }
        if let asked = errand.message, asked.method == "tools/list", asked.statesVersion {
            parameters.learn(from: bytes)
        }
        if !errand.isCancelled { write(bytes) }
        if errand.beginsSession { openGate() }
        return true
    }

    private mutating func ended(_ attempt: Attempt) {
        let errand = attempt.errand
        switch attempt.kind {
        case .json where errand.message?.request == nil && !errand.isStream:
            // What is no message, such as an empty object, only says that the notification was taken.
            if (try? Message(parsing: attempt.body)) != nil { _ = deliver(attempt.body, of: errand) }
            accepted(errand)
        case .json: if !deliver(attempt.body, of: errand) { unanswered(attempt) }
        case .events where errand.message?.request == nil && !errand.isStream: accepted(errand)
        case .events: if !attempt.isAnswered { unanswered(attempt) }
        case .error(let head): failed(errand, head, attempt.body)
        case .none: accepted(errand)
        }
    }

    /// The server took a message that has no response.
    private mutating func accepted(_ errand: Errand) {
        guard errand.message?.request == nil else {
            return fail(errand, "The MCP server of \(account) sent no response.")
        }
        switch errand.purpose {
        case .message(let message) where message.method == "notifications/initialized" && !message.statesVersion,
            .replayEnd(let message) where !message.statesVersion:
            openGate()
            openStream()
        default: break
        }
    }

    // MARK: Failures

    /// The stream ended, or the connection broke, before the response was there.
    mutating func broke(_ attempt: Attempt) {
        if case .error(let head) = attempt.kind { return failed(attempt.errand, head, []) }
        unanswered(attempt)
    }

    private mutating func unanswered(_ attempt: Attempt) {
        var errand = attempt.errand
        guard !attempt.isAnswered, !errand.isCancelled else { return }
        if case .end = errand.purpose { return }
        errand.failures += 1
        let lastID = attempt.events.lastID ?? errand.lastEventID
        let pause = Bridge.pause(attempt.events.retry, errand.failures)
        if errand.isStream {
            errand.lastEventID = lastID.flatMap { FieldRules.isValue($0) && !$0.isEmpty ? $0 : nil }
            return launch(errand, after: pause)
        }
        guard errand.failures < Bridge.mostFailures else { return giveUp(errand) }
        // The relay had not begun to send it.
        guard attempt.isSent else { return launch(errand, after: .milliseconds(100) * errand.failures) }
        guard let message = errand.message, message.request != nil else { return giveUp(errand) }
        if !message.statesVersion, let lastID, !lastID.isEmpty, FieldRules.isValue(lastID) {
            errand.lastEventID = lastID
            return launch(errand, after: pause)
        }
        guard message.isRepeatable, !errand.wasRepeated, !errand.hasSpoken else { return giveUp(errand) }
        errand.wasRepeated = true
        launch(errand, after: pause)
    }

    private mutating func giveUp(_ errand: Errand) {
        fail(
            errand,
            "The connection to the MCP server of \(account) broke before its response. The request may have been "
                + "carried out.")
    }

    /// The wait before a stream is connected again: what the server asks for, else a second, longer after failures.
    private static func pause(_ retry: Int?, _ failures: Int) -> Duration {
        let base = retry.map { Duration.milliseconds(min($0, 60_000)) } ?? .seconds(1)
        return min(base * (1 << min(max(failures - 1, 0), 5)), .seconds(60))
    }

    /// An HTTP error.
    private mutating func failed(_ errand: Errand, _ head: RelayHead, _ body: [UInt8]) {
        // A server without a standing stream says 405. Others refuse it in other ways: the session goes on without.
        if errand.isStream { return }
        if head.status == 401 {
            return fail(
                errand, "The MCP server of \(account) refuses its token. Run: \(login)", code: "token_refused",
                command: login)
        }
        if let scope = head.missingScope {
            let command = signIn(scope.isEmpty ? nil : scope)
            return fail(
                errand, "The MCP server of \(account) wants more scopes for this. Run: \(command)",
                code: "insufficient_scope", command: command)
        }
        if errand.lastEventID != nil { return giveUp(errand) }
        if let id = errand.request, let message = try? Message(parsing: body), case .response(let named) = message.kind
        {
            if named == id { return answer(errand, body) }
            if let error = message.error(for: id) { return answer(errand, error) }
        }
        fail(errand, "The MCP server of \(account) responded with HTTP \(head.status).")
    }

    /// There is no response to an attempt, and the relay says why.
    private mutating func refused(_ errand: Errand, _ refusal: RelayRefusal) {
        var errand = errand
        if errand.isStream {
            errand.failures += 1
            return launch(errand, after: Bridge.pause(nil, errand.failures))
        }
        let isLate = errand.waitsForSignIn && ["timeout", "timed_out"].contains(refusal.code)
        guard refusal.needsSignIn || isLate else {
            return fail(errand, refusal.detail, code: refusal.code)
        }
        let sentence = "\(refusal.needsSignIn ? refusal.detail : "\(account) is not signed in.") Run: \(login)"
        if saysSignIn { actions.append(.note(sentence)) }
        saysSignIn = false
        if errand.message?.method == "initialize", !errand.waitsForSignIn {
            errand.waitsForSignIn = true
            return launch(errand)
        }
        fail(errand, sentence, code: "sign_in_required", command: login)
    }

    private var login: String { signIn(nil) }

    /// The errand gets no response from the server: the client gets an error in its place.
    mutating func fail(_ errand: Errand, _ sentence: String, code: String? = nil, command: String? = nil) {
        guard let id = errand.request else {
            if !errand.isStream, !errand.isCancelled, errand.message != nil { actions.append(.note(sentence)) }
            switch errand.purpose {
            case .replay: replayFailed()
            case .replayEnd: openGate()
            case .message(let message) where message.method == "notifications/initialized": openGate()
            default: break
            }
            return
        }
        let data = [("code", code), ("command", command)].compactMap { name, value in value.map { (name, $0) } }
        answer(errand, ErrorResponse.bytes(id, code: -32_000, message: sentence, data: data))
    }

    private mutating func answer(_ errand: Errand, _ bytes: [UInt8]) {
        if !errand.isCancelled { write(bytes) }
        if errand.beginsSession, gate == .initialize { openGate() }
    }
}
