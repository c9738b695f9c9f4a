/// Replaced sessions of one slot whose replacement could not be written to the vault yet.
///
/// Until the vault holds a newer session, a restart would bring back the one in it. So none of them is ended at the
/// provider before.
struct ReplacedSessions: Sendable {
    /// The session whose record the vault holds; nil if that is the session that the lane holds, or none.
    private var stored: Closed?
    /// The vault never held these.
    private var others: [Closed] = []

    /// True if the record in the vault is of a session that has to be ended, not only overwritten.
    var holdsStored: Bool { stored != nil }

    /// True if this is the stored session, with whatever tokens.
    func isStored(_ session: Session, with tools: ProviderTools) -> Bool {
        guard let stored else { return false }
        let provider = stored.account.provider(with: tools)
        return provider.family(of: stored.session) == provider.family(of: session)
    }

    var isEmpty: Bool { stored == nil && others.isEmpty }

    mutating func add(_ closed: Closed) {
        if stored == nil { stored = closed } else { others.append(closed) }
    }

    /// A session that was replaced is held again, for example because another program handed it in. It is not ended.
    mutating func remove(where isHeldAgain: (Session) -> Bool) {
        if let stored, isHeldAgain(stored.session) { self.stored = nil }
        others.removeAll { isHeldAgain($0.session) }
    }

    /// The sessions to be ended, now that the vault holds none of them in its slot.
    ///
    /// - Parameter retirement: the vault's identifier of the stored one, which it keeps until the provider has been
    ///   told.
    func ended(retirement: String?) -> [Closed] {
        guard var stored else { return others }
        stored.retirement = retirement
        return [stored] + others
    }
}
