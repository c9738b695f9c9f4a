internal import Cryptography
internal import StrictJSON

/// What is remembered of a table of the configuration. As long as the table says the same, neither a reload nor a
/// restart extends its lifetime or opens what was revoked.
struct ExposedSocketTable: Sendable, Equatable {
    /// A digest of the table's content. Formatting does not change it.
    let digest: String
    /// How long it is open from when it was first taken up; nil for no bound. Whole seconds.
    let lifetime: Duration?
    /// Computed when the table was first taken up.
    let expiry: Deadline?
    /// Why it has ended, if it has: `revoked`, `expired` or `forgotten`.
    var ending: ExposedSocketRegistry.Ending?

    /// A table that is taken up for the first time.
    init(_ order: ExposedSocket.Order, by clock: BrokerClock, ending: ExposedSocketRegistry.Ending? = nil) {
        digest = ExposedSocketTable.digest(of: order)
        lifetime = order.lifetime
        expiry = order.lifetime.map { Deadline(in: $0, by: clock) }
        self.ending = ending
    }

    init(digest: String, lifetime: Duration?, expiry: Deadline?, ending: ExposedSocketRegistry.Ending?) {
        self.digest = digest
        self.lifetime = lifetime
        self.expiry = expiry
        self.ending = ending
    }

    /// True if the file has to keep it.
    var isKept: Bool { expiry != nil || ending != nil }

    func says(_ order: ExposedSocket.Order) -> Bool { digest == ExposedSocketTable.digest(of: order) }

    /// SHA-256 of the order as JSON, in hexadecimal.
    static func digest(of order: ExposedSocket.Order) -> String {
        Digest.hex(Digest.sha256(JSON.object(ExposedSocketRecord.members(of: order)).serialized()))
    }
}
