internal import BrokerCore
internal import OAuth
internal import RingbackBase

/// The providers' metadata and keys. Concurrent callers share one fetch; the result is cached.
actor ProviderDirectory: ProviderMemory {
    private struct Entry {
        var value: ProviderMetadata?
        /// Nil if it is fetched again before its next use.
        var fetchedAt: BootInstant?
        /// When the last fetch ended, successful or not.
        var askedAt: BootInstant?
        /// When they were last to be fetched again because an endpoint had failed.
        var doubtedAt: BootInstant?
        var fetch: Promise<Result<ProviderMetadata, BrokerError>>?
        /// The index of the discovery URL that has the metadata.
        var place: Int?
    }
    private var metadata: [DocumentPlace: Entry] = [:]
    private let keys: KeptDocuments<JSONWebKeySet>
    private var habits: [ProviderHabits.Key: ProviderHabits] = [:]
    /// Renewals of client secrets by account, pending or failed, with their start.
    private var secrets: [AccountName: (began: BootInstant, result: Promise<Result<Secret, BrokerError>>)] = [:]
    private let http: any HTTPClient
    private let work: Work
    private let clock: BrokerClock

    private static let metadataLifetime: Duration = .seconds(3_600)
    private static let confirmationTimeout: Duration = .seconds(5)
    /// If the provider does not respond, its known metadata stay valid for this long.
    private static let confirmationPause: Duration = .seconds(900)
    /// How long after a failed request of a caller further failures cause no second fetch.
    private static let doubtInterval: Duration = .seconds(60)
    /// The age of metadata that are fetched again after a refresh without a request. Such refreshes are repeated
    /// without a user, so the time is longer to limit the load at the provider.
    private static let unattendedDoubtAge: Duration = .seconds(1_800)

    init(http: any HTTPClient, work: Work, clock: BrokerClock) {
        self.http = http
        self.work = work
        self.clock = clock
        keys = KeptDocuments(work: work, clock: clock)
    }

    /// The metadata of an issuer, by OpenID Connect Discovery, else by RFC 8414.
    ///
    /// - Parameter http: what sends the requests, if they have to be fetched; nil for the usual one.
    func metadata(
        of account: Account, issuer: String, over http: (any HTTPClient)? = nil
    ) async throws(BrokerError) -> ProviderMetadata {
        let key = DocumentPlace(account.metadataAddress(of: issuer), account.trust)
        let entry = metadata[key] ?? Entry()
        if let value = entry.value, let fetchedAt = entry.fetchedAt,
            clock.bootInstant - fetchedAt < ProviderDirectory.metadataLifetime
        {
            return value
        }
        let timeout = entry.value == nil ? HTTPLimits().timeout : ProviderDirectory.confirmationTimeout
        let fetch: Promise<Result<ProviderMetadata, BrokerError>>
        if let running = entry.fetch {
            fetch = running
        } else {
            let http = http ?? self.http
            fetch = work.start {
                var found = await ProviderDirectory.discover(account, issuer, http, timeout, at: entry.place)
                if case .success(let first) = found.result, found.place == 0, account.oauth.mcp == nil,
                    first.isWorthCompleting
                {
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
            // If the provider does not respond now, use its known metadata.
            if error.isTransient, let value = metadata[key]?.value { return value }
            throw error
        }
    }

    /// The last metadata of an issuer, however old; nil if none were fetched since the start.
    func known(of account: Account, issuer: String) -> ProviderMetadata? {
        metadata[DocumentPlace(account.metadataAddress(of: issuer), account.trust)]?.value
    }

    /// Keeps metadata that the diagnostics have just fetched.
    func keep(_ value: ProviderMetadata, of account: Account, issuer: String) {
        let key = DocumentPlace(account.metadataAddress(of: issuer), account.trust)
        guard metadata[key]?.value == nil else { return }
        metadata[key, default: Entry()].value = value
        metadata[key]?.fetchedAt = clock.bootInstant
        metadata[key]?.askedAt = clock.bootInstant
    }

    func configurationChanged() {
        for key in metadata.keys { metadata[key]?.fetchedAt = nil }
        habits = [:]
        secrets = [:]
    }

    /// After a failed renewal of a client secret, the next attempt is this much later.
    private static let secretPause: Duration = .seconds(3_600)

    /// Renews a client secret. Concurrent callers share one request. After an error response the next request
    /// is sent when the pause has passed or the configuration was reloaded.
    func renewedSecret(
        of name: AccountName,
        _ renew: @escaping @Sendable (any HTTPClient, ProviderDirectory) async throws(BrokerError) -> Secret
    ) async throws(BrokerError) -> Secret {
        let result: Promise<Result<Secret, BrokerError>>
        if let known = secrets[name], clock.bootInstant - known.began < ProviderDirectory.secretPause {
            result = known.result
        } else {
            result = work.start { [http] in
                let renewed = await Result(awaiting: { () throws(BrokerError) in try await renew(http, self) })
                await self.noteSecret(renewed, of: name)
                return renewed
            }
            secrets[name] = (clock.bootInstant, result)
        }
        return try await result.get()
    }

    private func noteSecret(_ result: Result<Secret, BrokerError>, of name: AccountName) {
        if case .failure(let error) = result, !error.isTransient { return }
        secrets[name] = nil
    }

    /// - Parameter isRequested: true if a caller asked for what failed: a sign-in, or a refresh.
    func doubt(_ account: Account, issuer: String, isRequested: Bool) {
        let key = DocumentPlace(account.metadataAddress(of: issuer), account.trust)
        guard let entry = metadata[key], let askedAt = entry.askedAt else { return }
        let now = clock.bootInstant
        if isRequested {
            if let doubtedAt = entry.doubtedAt, now - doubtedAt < ProviderDirectory.doubtInterval { return }
        } else {
            guard now - askedAt >= ProviderDirectory.unattendedDoubtAge else { return }
        }
        metadata[key]?.doubtedAt = now
        metadata[key]?.fetchedAt = nil
    }

    func habits(of key: ProviderHabits.Key) -> ProviderHabits { habits[key] ?? ProviderHabits() }

    func note(of key: ProviderHabits.Key, _ change: @Sendable (inout ProviderHabits) -> Void) {
        change(&habits[key, default: ProviderHabits()])
    }

    private func noteMetadata(_ result: Result<ProviderMetadata, BrokerError>, at place: Int?, for key: DocumentPlace) {
        metadata[key]?.fetch = nil
        metadata[key]?.askedAt = clock.bootInstant
        switch result {
        case .success(let value):
            metadata[key]?.value = value
            metadata[key]?.place = place
            metadata[key]?.fetchedAt = clock.bootInstant
        case .failure(let error):
            guard error.isTransient else { return }
            metadata[key]?.fetchedAt =
                clock.bootInstant - ProviderDirectory.metadataLifetime + ProviderDirectory.confirmationPause
        }
    }

    private static func discover(
        _ account: Account, _ issuer: String, _ http: any HTTPClient, _ timeout: Duration, at known: Int?
    ) async -> (result: Result<ProviderMetadata, BrokerError>, place: Int?) {
        let requests: [HTTPRequest]
        do {
            requests = try ProviderMetadata.discoveryRequests(
                issuer: issuer, order: account.oauth.mcp == nil ? .openID : .mcp)
        } catch {
            return (.failure(BrokerError(error, host: issuer)), nil)
        }
        var failure = BrokerError.misconfigured(.stated("The issuer has no metadata."))
        var isAbsent = account.oauth.mcp?.isOwnIssuer == true && known == nil
        for (place, var request) in requests.enumerated() where known == nil || known == place {
            request.limits.timeout = timeout
            do {
                let response = try await account.send(request, toProvider: http)
                isAbsent = isAbsent && response.isAbsent
                return (.success(try ProviderMetadata(parsing: response, issuer: issuer)), place)
            } catch let error as BrokerError {
                return (.failure(error), nil)
            } catch let error as OAuthError {
                // Report the error of the first URL, unless only the second one is used.
                if place == known ?? 0 {
                    failure = BrokerError(error, host: request.host)
                    // The issuer of a preset cannot be changed in the account.
                    if account.configuredProvider == .oidc, case .invalid = error {
                        failure = failure.adding(.stated("Look at issuer of the account."))
                    }
                }
                if case .unavailable = error { return (.failure(failure), nil) }
            } catch {
                return (.failure(.cancelled), nil)
            }
        }
        if isAbsent, let usual = try? ProviderMetadata(ofServerWithoutMetadata: issuer) {
            return (.success(usual), nil)
        }
        return (.failure(failure), nil)
    }

    /// The metadata completed with members that only the document at the second URL has. If that document cannot be
    /// fetched now, the members that it had before are used. If it is not valid, it is ignored.
    static func complete(
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

    func keys(of account: Account, at address: String, isStale: Bool) async throws(BrokerError) -> JSONWebKeySet {
        try await keys.value(at: DocumentPlace(address, account.trust), isStale: isStale) {
            [http] () throws(BrokerError) in
            var request = HTTPRequest(url: address)
            request.limits = HTTPLimits(maxBody: JSONWebKeySet.maxLength)
            let response = try await account.send(request, toProvider: http)
            return try BrokerError.reading(from: request.host, try JSONWebKeySet(parsing: response))
        }
    }
}

extension Account {
    /// The key of an issuer's cached metadata: another one for an MCP server, whose discovery URLs have another order.
    fileprivate func metadataAddress(of issuer: String) -> String { oauth.mcp == nil ? issuer : "mcp \(issuer)" }
}
