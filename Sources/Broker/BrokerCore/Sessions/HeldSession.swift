/// The session of a lane, and what is known about it there. All of this ends with the session.
struct HeldSession: Sendable, Equatable {
    let session: Session
    /// The vault could not be written. The write is tried again until it succeeds. Always false for a session that is
    /// never written.
    let isUnsaved: Bool
    /// It is refreshed at once: a refresh may have been interrupted, or the token expired meanwhile.
    let isUrgent: Bool
    /// The last refresh of the session's own token.
    private(set) var lastRefresh: LastRefresh?
    /// A refresh has been tried for ``Session/end``. If that did not move the end, it is not tried again.
    private(set) var hasTriedEnd = false

    struct LastRefresh: Sendable, Equatable {
        let endedAt: BootInstant
        /// Nil if it succeeded.
        let error: BrokerError?
    }

    init(_ session: Session, isUnsaved: Bool = false, isUrgent: Bool = false) {
        self.session = session
        self.isUnsaved = isUnsaved && !session.isEphemeral
        self.isUrgent = isUrgent
    }

    /// The same session with other contents.
    func changed(to session: Session, isUnsaved: Bool, isUrgent: Bool) -> HeldSession {
        var held = HeldSession(session, isUnsaved: isUnsaved, isUrgent: isUrgent)
        held.lastRefresh = lastRefresh
        held.hasTriedEnd = hasTriedEnd && session.end == self.session.end
        return held
    }

    mutating func refreshBegan() { hasTriedEnd = session.end != nil }

    mutating func refreshEnded(_ error: BrokerError?, at now: BootInstant) {
        lastRefresh = LastRefresh(endedAt: now, error: error)
    }
}
