internal import HTTPMessages

/// Which tokens an origin has refused, by what tools have told. A value without a clock: every call gets the instant.
///
/// They are kept for each origin and each key of a token. An exposed socket with fewer scopes gets a token of another
/// key than its owner for the same origin: what is given to one must not make a rejection by the other forgotten.
///
/// A refused token is replaced once: the next lookup refreshes it. If the replacement is refused too, the token is
/// probably good and lacks a scope, so refreshing does not help. It is then not refreshed for this origin's sake for
/// ``rest``. Tokens are known by their SHA-256 only.
struct OriginRejections: Sendable {
    /// What a rejection means.
    enum Outcome: Sendable, Equatable {
        /// The token is not the last one of its key that was given for this origin, or its rejection is known already.
        case ignored
        /// The next lookup replaces the token.
        case noted
        /// The token had replaced a refused one.
        case repeated
    }

    private struct Entry {
        /// The last token of this key that was given for the origin.
        var given: [UInt8]?
        /// That token, once it was refused.
        var rejected: [UInt8]?
        /// The token that has replaced a refused one.
        var replacement: [UInt8]?
        var restsUntil: BootInstant?
        var givenAt: BootInstant
    }

    /// How long an origin that refused two tokens in a row causes no refresh.
    static let rest: Duration = .seconds(300)

    /// How many keys of an origin are remembered. Beyond it the one is forgotten that was given longest ago.
    static let mostKeys = 64

    private var entries: [OriginRule: [TokenKey: Entry]] = [:]

    /// True if this token is the last one of its key that was given for the origin.
    func hasGiven(_ digest: [UInt8], for rule: OriginRule) -> Bool {
        entries[rule]?.values.contains { $0.given == digest } ?? false
    }

    /// A tool tells that the origin refused a token.
    mutating func reject(_ digest: [UInt8], by rule: OriginRule, at now: BootInstant) -> Outcome {
        var outcome = Outcome.ignored
        // A provider may issue the same token for two keys.
        for (key, former) in entries[rule] ?? [:] where former.given == digest && former.rejected != digest {
            var entry = former
            entry.rejected = digest
            if entry.replacement == digest {
                entry.restsUntil = now + OriginRejections.rest
                outcome = .repeated
            } else if outcome == .ignored {
                outcome = .noted
            }
            entries[rule]?[key] = entry
        }
        return outcome
    }

    /// True if a token that is about to be given must be replaced first.
    func mustReplace(_ digest: [UInt8], _ key: TokenKey, for rule: OriginRule, at now: BootInstant) -> Bool {
        guard let entry = entries[rule]?[key], entry.rejected == digest else { return false }
        return entry.restsUntil.map { $0 <= now } ?? true
    }

    /// True if this token was refused as the second one in a row, and is given again.
    func isRepeated(_ digest: [UInt8], _ key: TokenKey, by rule: OriginRule, at now: BootInstant) -> Bool {
        guard let entry = entries[rule]?[key], entry.rejected == digest, let end = entry.restsUntil else {
            return false
        }
        return end > now
    }

    /// A token is given for the origin.
    ///
    /// - Parameter isReplacement: a refresh was tried because the token before it was refused.
    mutating func gave(
        _ digest: [UInt8], _ key: TokenKey, for rule: OriginRule, isReplacement: Bool, at now: BootInstant
    ) {
        var entry = entries[rule]?[key] ?? Entry(givenAt: now)
        if entry.rejected == digest {
            // The refresh brought the same token, or the account has nothing to refresh it with.
            if isReplacement { entry.restsUntil = now + OriginRejections.rest }
        } else {
            entry.rejected = nil
            if isReplacement { entry.replacement = digest }
        }
        entry.given = digest
        entry.givenAt = now
        entries[rule, default: [:]][key] = entry
        guard let keys = entries[rule], keys.count > OriginRejections.mostKeys else { return }
        if let oldest = keys.min(by: { $0.value.givenAt < $1.value.givenAt })?.key { entries[rule]?[oldest] = nil }
    }

    /// Forgets the origins that are not configured any more.
    mutating func keep(_ rules: Set<OriginRule>) { entries = entries.filter { rules.contains($0.key) } }
}
