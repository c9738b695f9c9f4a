public import RingbackBase

/// A document by its address and the certificates that are trusted for it.
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

/// Documents of providers, such as their keys: fetched once for all callers that wait, and kept for a while. If a
/// temporary error keeps a document from being fetched again, the kept one is used.
public actor KeptDocuments<Document: Sendable & Equatable> {
    private struct Entry {
        var value: Document?
        var fetchedAt: BootInstant?
        /// When a newer document was last requested because the kept one did not fit; nil if that found a newer one.
        var refetchedAt: BootInstant?
        var fetch: Promise<Result<Document, BrokerError>>?
    }

    private var entries: [DocumentPlace: Entry] = [:]
    private let work: Work
    private let clock: BrokerClock
    private let lifetime: Duration
    private let refetchInterval: Duration

    /// - Parameters:
    ///   - lifetime: how long a document is used before it is requested again.
    ///   - refetchInterval: the shortest time between two requests for a newer document because the kept one did not
    ///     fit, if the first one found none.
    public init(
        work: Work, clock: BrokerClock, lifetime: Duration = .seconds(3_600), refetchInterval: Duration = .seconds(30)
    ) {
        self.work = work
        self.clock = clock
        self.lifetime = lifetime
        self.refetchInterval = refetchInterval
    }

    /// The document. With `isStale`, the kept one did not fit and a newer one is requested.
    public func value(
        at place: DocumentPlace, isStale: Bool,
        fetching fetch: @escaping @Sendable () async throws(BrokerError) -> Document
    ) async throws(BrokerError) -> Document {
        let entry = entries[place] ?? Entry()
        if let value = entry.value {
            if !isStale, let fetchedAt = entry.fetchedAt, clock.bootInstant - fetchedAt < lifetime { return value }
            if isStale, let last = entry.refetchedAt, clock.bootInstant - last < refetchInterval { return value }
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
            if isStale { entries[place]?.refetchedAt = clock.bootInstant }
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
        if let former = entries[place]?.value, former != value { entries[place]?.refetchedAt = nil }
        entries[place]?.value = value
        entries[place]?.fetchedAt = clock.bootInstant
    }
}
