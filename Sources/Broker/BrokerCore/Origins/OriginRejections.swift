internal import RingbackBase

/// Which tokens an origin has refused, as tools report. A value without a clock: every call gets the instant.
///
/// They are kept for each origin, key of a token, and socket through which it was given: a program behind an exposed
/// socket cannot make its owner's rejection be forgotten, and a false one does not affect other tools.
///
/// A refused token is replaced once. If the replacement is refused too, the token probably lacks a scope, and this
/// origin causes no refresh for ``rest``. Tokens are known by their SHA-256 only.
struct OriginRejections: Sendable {
    struct Holder: Hashable, Sendable {
        let key: TokenKey
        let socket: String?
    }

    private struct Entry {
        var given: [UInt8]?
        /// That token, once it was refused.
        var rejected: [UInt8]?
        var replacement: [UInt8]?
        var replacedAt: BootInstant?
        var restsUntil: BootInstant?
        var givenAt: BootInstant
    }

    static let rest: Duration = .seconds(300)

    /// How long a guess does not concern a token that has replaced a refused one: longer than a request to a server takes.
    static let settling: Duration = .seconds(10)

    /// With one more for an origin, the holder whose token was given longest ago is forgotten.
    static let mostHolders = 64

    private var entries: [OriginRule: [Holder: Entry]] = [:]

    /// True if this token is the last one that was given through the socket for the origin, of some key.
    func hasGiven(_ digest: [UInt8], at socket: String?, for rule: OriginRule) -> Bool {
        entries[rule]?.contains { $0.key.socket == socket && $0.value.given == digest } ?? false
    }

    /// A tool reports through a socket that the origin refused a token.
    ///
    /// - Parameter isGuess: the tool does not say which token it sent. Of several that sent the same one, all but the first
    ///   report too late: the token that is given now has replaced theirs already.
    mutating func reject(
        _ digest: [UInt8], isGuess: Bool = false, at socket: String?, by rule: OriginRule, at now: BootInstant
    ) -> OriginRegistry.Rejection {
        var outcome = OriginRegistry.Rejection.ignored
        // A provider may issue the same token for two keys.
        for (holder, former) in entries[rule] ?? [:]
        where holder.socket == socket && former.given == digest && former.rejected != digest {
            let isNew = former.replacement == digest && former.replacedAt.map { $0 + Self.settling > now } == true
            guard !isGuess || !isNew else { continue }
            var entry = former
            entry.rejected = digest
            if entry.replacement == digest {
                entry.restsUntil = now + OriginRejections.rest
                outcome = .repeated
            } else if outcome == .ignored {
                outcome = .noted
            }
            entries[rule]?[holder] = entry
        }
        return outcome
    }

    /// True if a token that is about to be given must be replaced first.
    func mustReplace(_ digest: [UInt8], _ holder: Holder, for rule: OriginRule, at now: BootInstant) -> Bool {
        guard let entry = entries[rule]?[holder], entry.rejected == digest else { return false }
        return entry.restsUntil.map { $0 <= now } ?? true
    }

    /// True if this token was refused as the second one in a row, and is given again.
    func isRepeated(_ digest: [UInt8], _ holder: Holder, by rule: OriginRule, at now: BootInstant) -> Bool {
        guard let entry = entries[rule]?[holder], entry.rejected == digest, let end = entry.restsUntil else {
            return false
        }
        return end > now
    }

    /// - Parameter isReplacement: a refresh was tried because the token before it was refused.
    mutating func gave(
        _ digest: [UInt8], _ holder: Holder, for rule: OriginRule, isReplacement: Bool, at now: BootInstant
    ) {
        var entry = entries[rule]?[holder] ?? Entry(givenAt: now)
        if entry.rejected == digest {
            // The refresh brought the same token, or the account has nothing to refresh it with.
            if isReplacement { entry.restsUntil = now + OriginRejections.rest }
        } else {
            entry.rejected = nil
            if isReplacement { (entry.replacement, entry.replacedAt) = (digest, now) }
        }
        entry.given = digest
        entry.givenAt = now
        entries[rule, default: [:]][holder] = entry
        guard let holders = entries[rule], holders.count > OriginRejections.mostHolders else { return }
        if let oldest = holders.min(by: { $0.value.givenAt < $1.value.givenAt })?.key { entries[rule]?[oldest] = nil }
    }

    mutating func keep(_ rules: Set<OriginRule>) { entries = entries.filter { rules.contains($0.key) } }
}
