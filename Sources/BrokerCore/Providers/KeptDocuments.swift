public import HTTPMessages

/// Where a document is, and by which trust: the same address under another trust is another document.
public struct DocumentPlace: Hashable, Sendable {
    public let address: String
    private let authorities: Int
    private let pins: [String]

    public init(_ address: String, _ trust: ServerTrust) {
        self.address = address
        authorities = trust.certificateAuthorities?.hashValue ?? 0
        pins = trust.pinnedPublicKeys
    }
}

/// Documents of providers, such as their keys: fetched once for all who wait, and kept for a while. What is known is not
/// forgotten for an outage of the place where it is kept.
public actor KeptDocuments<Document: Sendable> {
    private struct Entry {
        var value: Document?
        var fetchedAt = 0
        /// When a newer one than the one that did not fit was asked for.
        var refetchedAt: Int?
        var fetch: Promise<Result<Document, BrokerError>>?
    }

    private var entries: [DocumentPlace: Entry] = [:]
    private let work: Work
    private let clock: BrokerClock
    private let lifetime: Int
    private let refetchInterval: Int

    /// - Parameters:
    ///   - lifetime: seconds that a document is believed.
    ///   - refetchInterval: seconds between two wishes for a newer one than the one that did not fit.
    public init(work: Work, clock: BrokerClock, lifetime: Int = 3_600, refetchInterval: Int = 30) {
        self.work = work
        self.clock = clock
        self.lifetime = lifetime
        self.refetchInterval = refetchInterval
    }

    /// The document. `isStale` asks for a newer one than the one that did not fit.
    public func value(
        at place: DocumentPlace, isStale: Bool,
        fetching fetch: @escaping @Sendable () async throws(BrokerError) -> Document
    ) async throws(BrokerError) -> Document {
        let entry = entries[place] ?? Entry()
        let age = clock.uptime - entry.fetchedAt
        if let value = entry.value {
            if !isStale, age >= 0, age < lifetime { return value }
            if isStale, let last = entry.refetchedAt, (0..<refetchInterval).contains(clock.uptime - last) {
                return value
            }
        }
        let fetching: Promise<Result<Document, BrokerError>>
        if let running = entry.fetch {
            fetching = running
        } else {
            fetching = work.start {
                let result = await Result(awaiting: fetch)
                await self.note(result, at: place)
                return result
            }
            entries[place, default: Entry()].fetch = fetching
            if isStale { entries[place]?.refetchedAt = clock.uptime }
        }
        do {
            return try await fetching.get()
        } catch {
            if !isStale, error.isTransient, let value = entries[place]?.value { return value }
            throw error
        }
    }

    private func note(_ result: Result<Document, BrokerError>, at place: DocumentPlace) {
        entries[place]?.fetch = nil
        guard case .success(let value) = result else { return }
        entries[place]?.value = value
        entries[place]?.fetchedAt = clock.uptime
    }
}
