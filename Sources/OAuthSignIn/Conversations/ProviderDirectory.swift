internal import BrokerCore
internal import HTTPMessages
internal import OAuth
internal import Secrets

/// What providers say about themselves: metadata and keys, fetched once for all who wait and kept for a while.
actor ProviderDirectory: ProviderMemory {
    private struct Entry {
        var value: ProviderMetadata?
        var fetchedAt = 0
        /// When it was asked for last, with whatever result.
        var askedAt: Int?
        var fetch: Promise<Result<ProviderMetadata, BrokerError>>?
        /// Which of the places where it may be is the one.
        var place: Int?
    }
    private var metadata: [DocumentPlace: Entry] = [:]
    private let keys: KeptDocuments<JSONWebKeySet>
    private var habits: [ProviderHabits.Key: ProviderHabits] = [:]
    /// Client secrets that are asked for, or were refused, by account; with the second in which that began.
    private var secrets: [AccountName: (began: Int, result: Promise<Result<Secret, BrokerError>>)] = [:]
    private let http: any HTTPClient
    private let work: Work
    private let clock: BrokerClock

    /// An hour: endpoints change rarely, and a day with wrong ones is long.
    private static let metadataLifetime = 3_600

    /// How long an answer is waited for that only confirms what is known.
    private static let confirmationTimeout: Duration = .seconds(5)
    /// A provider that did not confirm its metadata is believed this long before it is asked again (seconds).
    private static let confirmationPause = 900

    /// Metadata whose endpoints fail are asked for again, but not more often than this (seconds).
    private static let doubtInterval = 60
    /// The same for refreshes, which nobody watches: with the requests that ``Backoff`` allows in an hour, and two
    /// documents each time, the provider gets no more than it can bear.
    private static let refreshDoubtInterval = 1_800

    init(http: any HTTPClient, work: Work, clock: BrokerClock) {
        self.http = http
        self.work = work
        self.clock = clock
        keys = KeptDocuments(work: work, clock: clock)
    }

    /// The metadata of an issuer, by OpenID Connect Discovery, else by RFC 8414.
    func metadata(of account: Account, issuer: String) async throws(BrokerError) -> ProviderMetadata {
        let key = DocumentPlace(issuer, account.trust)
        let entry = metadata[key] ?? Entry()
        let age = clock.uptime - entry.fetchedAt
        if let value = entry.value, age >= 0, age < ProviderDirectory.metadataLifetime { return value }
        let timeout = entry.value == nil ? HTTPLimits().timeout : ProviderDirectory.confirmationTimeout
        let fetch: Promise<Result<ProviderMetadata, BrokerError>>
        if let running = entry.fetch {
            fetch = running
        } else {
            fetch = work.start { [http] in
                var found = await ProviderDirectory.discover(account, issuer, http, timeout, at: entry.place)
                if case .success(let first) = found.result, found.place == 0, first.isWorthCompleting {
                    found.result = .success(
                        await ProviderDirectory.complete(first, account, issuer, http, known: entry.value))
                }
                await self.noteMetadata(found.result, at: found.place, for: key)
                return found.result
            }
            metadata[key, default: Entry()].fetch = fetch
        }
        do {
            return try await fetch.get()
        } catch {
            // A known provider that does not answer now has not changed.
            if error.isTransient, let value = metadata[key]?.value { return value }
            throw error
        }
    }

    /// Asks for everything again before its next use. What is known still counts while a provider does not answer.
    func configurationChanged() {
        for key in metadata.keys { metadata[key]?.fetchedAt = clock.uptime - ProviderDirectory.metadataLifetime }
        habits = [:]
        secrets = [:]
    }

    /// A provider that gave no other secret is not asked again for so long (seconds).
    private static let secretPause = 3_600

    /// Has a client secret renewed, once for all who wait (DCR-05). What the provider refused is not asked for again
    /// until the pause is over or the configuration is read again.
    func renewedSecret(
        of name: AccountName,
        _ renew: @escaping @Sendable (any HTTPClient, ProviderDirectory) async throws(BrokerError) -> Secret
    ) async throws(BrokerError) -> Secret {
        let result: Promise<Result<Secret, BrokerError>>
        if let known = secrets[name], clock.uptime - known.began < ProviderDirectory.secretPause {
            result = known.result
        } else {
            result = work.start { [http] in
                let renewed = await Result(awaiting: { () throws(BrokerError) in try await renew(http, self) })
                await self.noteSecret(renewed, of: name)
                return renewed
            }
            secrets[name] = (clock.uptime, result)
        }
        return try await result.get()
    }

    private func noteSecret(_ result: Result<Secret, BrokerError>, of name: AccountName) {
        if case .failure(let error) = result, !error.isTransient { return }
        secrets[name] = nil
    }

    /// An endpoint of the issuer's metadata has failed, in a refresh or for a person: they are asked for again before
    /// their next use.
    func doubt(_ account: Account, issuer: String, isRefresh: Bool) {
        let key = DocumentPlace(issuer, account.trust)
        let interval = isRefresh ? ProviderDirectory.refreshDoubtInterval : ProviderDirectory.doubtInterval
        guard let askedAt = metadata[key]?.askedAt, clock.uptime - askedAt >= interval else { return }
        metadata[key]?.fetchedAt = clock.uptime - ProviderDirectory.metadataLifetime
    }

    func habits(of key: ProviderHabits.Key) -> ProviderHabits { habits[key] ?? ProviderHabits() }

    func note(of key: ProviderHabits.Key, _ change: @Sendable (inout ProviderHabits) -> Void) {
        change(&habits[key, default: ProviderHabits()])
    }

    private func noteMetadata(_ result: Result<ProviderMetadata, BrokerError>, at place: Int?, for key: DocumentPlace) {
        metadata[key]?.fetch = nil
        metadata[key]?.askedAt = clock.uptime
        switch result {
        case .success(let value):
            metadata[key]?.value = value
            metadata[key]?.place = place
            metadata[key]?.fetchedAt = clock.uptime
        case .failure(let error):
            guard error.isTransient else { return }
            metadata[key]?.fetchedAt =
                clock.uptime - ProviderDirectory.metadataLifetime + ProviderDirectory.confirmationPause
        }
    }

    private static func discover(
        _ account: Account, _ issuer: String, _ http: any HTTPClient, _ timeout: Duration, at known: Int?
    ) async -> (result: Result<ProviderMetadata, BrokerError>, place: Int?) {
        let requests: [HTTPRequest]
        do {
            requests = try ProviderMetadata.discoveryRequests(issuer: issuer)
        } catch {
            return (.failure(BrokerError(error, host: issuer)), nil)
        }
        var failure = BrokerError.misconfigured("The issuer has no metadata.")
        for (place, var request) in requests.enumerated() where known == nil || known == place {
            request.limits.timeout = timeout
            do {
                let response = try await account.send(request, toProvider: http)
                return (.success(try ProviderMetadata(parsing: response, issuer: issuer)), place)
            } catch let error as BrokerError {
                return (.failure(error), nil)
            } catch let error as OAuthError {
                // The first place's complaint is the one to show, unless only the second place exists.
                if place == known ?? 0 {
                    failure = BrokerError(error, host: request.host)
                    // Of a preset, the issuer is not the account's to choose.
                    if account.provider == "oidc", case .invalid = error {
                        failure = failure.adding("Look at issuer of the account.")
                    }
                }
                if case .unavailable = error { return (.failure(failure), nil) }
            } catch {
                return (.failure(.cancelled), nil)
            }
        }
        return (.failure(failure), nil)
    }

    /// The metadata with what only the document at the second place says. One that cannot be had or used is done
    /// without; while it cannot be had, what it said before still holds.
    private static func complete(
        _ first: ProviderMetadata, _ account: Account, _ issuer: String, _ http: any HTTPClient,
        known: ProviderMetadata?
    ) async -> ProviderMetadata {
        guard var request = (try? ProviderMetadata.discoveryRequests(issuer: issuer))?.last else { return first }
        request.limits.timeout = confirmationTimeout
        do {
            let response = try await account.send(request, toProvider: http)
            return first.completed(by: try ProviderMetadata(parsing: response, issuer: issuer))
        } catch let error as OAuthError {
            guard case .unavailable = error else { return first }
        } catch {}
        return known.map { first.completed(by: $0) } ?? first
    }

    /// The provider's keys. `isStale` asks for newer ones than those that did not fit.
    func keys(of account: Account, at address: String, isStale: Bool) async throws(BrokerError) -> JSONWebKeySet {
        try await keys.value(at: DocumentPlace(address, account.trust), isStale: isStale) {
            [http] () throws(BrokerError) in
            var request = HTTPRequest(url: address)
            request.limits = HTTPLimits(maxBody: JSONWebKeySet.maxLength)
            let response = try await account.send(request, toProvider: http)
            do throws(OAuthError) {
                return try JSONWebKeySet(parsing: response)
            } catch {
                throw BrokerError(error, host: request.host)
            }
        }
    }
}
