internal import Cryptography
internal import StrictJSON

/// What is remembered of a table of the configuration: neither a reload nor a restart begins its time anew, or opens what
/// was revoked, as long as the table says the same.
struct ExposedSocketTable: Sendable, Equatable {
    /// Of what the table says, not of how it is written.
    let digest: String
    /// Seconds.
    let lifetime: Int?
    /// Set when the table was first taken up.
    let expiry: Deadline?
    /// `revoked` or `expired`, once it is.
    var ending: ExposedSocketRegistry.Ending?

    /// A table that is taken up now.
    init(_ order: ExposedSocket.Order, by clock: BrokerClock, ending: ExposedSocketRegistry.Ending? = nil) {
        digest = ExposedSocketTable.digest(of: order)
        lifetime = order.lifetime
        expiry = order.lifetime.map { Deadline(in: $0, by: clock) }
        self.ending = ending
    }

    init(digest: String, lifetime: Int?, expiry: Deadline?, ending: ExposedSocketRegistry.Ending?) {
        self.digest = digest
        self.lifetime = lifetime
        self.expiry = expiry
        self.ending = ending
    }

    /// There is something to remember.
    var isKept: Bool { expiry != nil || ending != nil }

    func says(_ order: ExposedSocket.Order) -> Bool { digest == ExposedSocketTable.digest(of: order) }

    /// SHA-256 of the order as JSON, in hexadecimal.
    static func digest(of order: ExposedSocket.Order) -> String {
        Digest.hex(Digest.sha256(JSON.object(ExposedSocketRecord.members(of: order)).serialized()))
    }
}
