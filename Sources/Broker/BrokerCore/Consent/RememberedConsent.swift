internal import RingbackBase

/// A decision of the user that holds for further requests.
public struct RememberedConsent: Sendable, Equatable {
    public let id: String
    public let account: AccountName
    public let executable: String
    /// The control group or session that it belongs to; nil for a decision for always, which holds for the executable as
    /// long as root owns it and nobody else can write to it.
    public let scope: String?
    /// True if it is about showing the account to other programs, false for its tokens.
    public let exposes: Bool
    public let decision: ConsentDecision
    public let madeAt: WallInstant
    public let expiry: Deadline?

    /// - Parameter lifetime: nil if it holds until the end of `scope`.
    public init(
        _ decision: ConsentDecision, on question: ConsentQuestion, of executable: String, scope: String?,
        lifetime: Duration?, by clock: BrokerClock
    ) {
        id = RememberedConsent.newID()
        account = question.account
        self.executable = executable
        self.scope = scope
        exposes = question.use.exposesAccount
        self.decision = decision
        madeAt = clock.wallInstant
        expiry = lifetime.map { Deadline(in: $0, by: clock) }
    }

    public func isReplaced(by other: RememberedConsent) -> Bool {
        (account, executable, scope, exposes) == (other.account, other.executable, other.scope, other.exposes)
    }

    /// Not a number that counts: an answer to an earlier question must not meet a later one.
    public static func newID() -> String {
        let digits = String(UInt32.random(in: .min ... .max), radix: 16)
        return String(repeating: "0", count: 8 - digits.utf8.count) + digits
    }

    // MARK: The record of decisions for always, in the state directory

    /// A larger file was not written by Ringback.
    public static let maxSize = 1 << 20
    private static let version = 1

    public static func encode(_ consents: [RememberedConsent]) -> [UInt8] {
        let kept = consents.filter { $0.scope == nil }.map { consent -> JSONObject in
            [
                "id": consent.id, "account": consent.account.rawValue, "executable": consent.executable,
                "exposes": consent.exposes, "decision": consent.decision.rawValue, "made_at": consent.madeAt.seconds,
            ]
        }
        let document: JSONObject = ["version": version, "consents": kept]
        return JSON.object(document).serialized()
    }

    /// Entries that are not valid are left out: the user is asked again.
    public static func decode(_ bytes: [UInt8]) -> [RememberedConsent] {
        guard let document = try? JSON(parsing: bytes), document["version"]?.integer == version else { return [] }
        return (document["consents"]?.array ?? []).compactMap { RememberedConsent(reading: $0) }
    }

    private init?(reading entry: JSON) {
        guard let id = entry["id"]?.string, let account = entry["account"]?.string.flatMap({ AccountName($0) }),
            let executable = entry["executable"]?.string, executable.hasPrefix("/"),
            let exposes = entry["exposes"]?.bool,
            let decision = entry["decision"]?.string.flatMap(ConsentDecision.init),
            let madeAt = entry["made_at"]?.integer
        else { return nil }
        self.id = id
        self.account = account
        self.executable = executable
        scope = nil
        self.exposes = exposes
        self.decision = decision
        self.madeAt = WallInstant(seconds: madeAt)
        expiry = nil
    }
}
