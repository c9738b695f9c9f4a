// Sessions of the older revisions: a session that the server forgot, and the standing stream.

extension Bridge {
    /// The server knows the session no more. It gets the client's `initialize` once more, and then what it has not taken.
    mutating func sessionEnded(_ errand: Errand) {
        var errand = errand
        errand.wasReplayed = true
        errand.lastEventID = nil
        guard let initialize else {
            return fail(errand, "The MCP server of \(account) has ended the session. Start the client again.")
        }
        // What the server asked for in the old session needs no response in the new one.
        if case .response? = errand.message?.kind { return }
        // Another message has found it out before.
        guard errand.session == session, gate == nil else {
            guard gate == nil else { return held.append(errand) }
            return launch(errand)
        }
        gate = .replay
        (session, version) = (nil, nil)
        held.append(errand)
        closeStream()
        launch(Errand(.replay(initialize)))
    }

    /// The new session is there.
    mutating func replayed() {
        guard let initialized else { return openGate() }
        launch(Errand(.replayEnd(initialized)))
    }

    mutating func replayFailed() {
        let waiting = held
        held = []
        gate = nil
        for errand in waiting {
            fail(errand, "The MCP server of \(account) has ended the session and begins no new one.")
        }
    }

    /// Opens the stream for what the server says by itself.
    mutating func openStream() {
        closeStream()
        guard endsAt == nil else { return }
        launch(Errand(.stream))
    }

    mutating func closeStream() {
        later.removeAll { $0.errand.isStream }
        for (number, attempt) in attempts where attempt.errand.isStream {
            attempts[number] = nil
            actions.append(.close(number))
        }
    }
}
