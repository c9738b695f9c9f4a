// Sessions of the older revisions: a session that the server forgot, and the standing stream.

extension Bridge {
    /// The server has forgotten the session. It is sent the client's `initialize` again, then the messages that it has not
    /// taken.
    mutating func sessionEnded(_ outgoing: OutgoingRequest) {
        var outgoing = outgoing
        outgoing.wasReplayed = true
        outgoing.lastEventID = nil
        guard let initialize else {
            return fail(outgoing, "The MCP server of \(account) has ended the session. Start the client again.")
        }
        // What the server asked for in the old session needs no response in the new one.
        if case .response? = outgoing.message?.kind { return }
        // Another message got this error before.
        guard outgoing.session == session, gate == nil else {
            guard gate == nil else { return held.append(outgoing) }
            return launch(outgoing)
        }
        gate = .replay
        (session, version) = (nil, nil)
        held.append(outgoing)
        closeStream()
        launch(OutgoingRequest(.replay(initialize)))
    }

    /// The new session is there.
    mutating func replayed() {
        guard let initialized else { return openGate() }
        launch(OutgoingRequest(.replayEnd(initialized)))
    }

    mutating func replayFailed() {
        let waiting = held
        held = []
        gate = nil
        for outgoing in waiting {
            fail(outgoing, "The MCP server of \(account) has ended the session and begins no new one.")
        }
    }

    /// Opens the stream for what the server says by itself.
    mutating func openStream() {
        closeStream()
        guard endsAt == nil else { return }
        launch(OutgoingRequest(.stream))
    }

    mutating func closeStream() {
        later.removeAll { $0.outgoing.isStream }
        for (number, attempt) in attempts where attempt.outgoing.isStream {
            attempts[number] = nil
            actions.append(.close(number))
        }
    }
}
