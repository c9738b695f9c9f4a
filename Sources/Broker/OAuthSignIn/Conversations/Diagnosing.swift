internal import BrokerCore
internal import OAuth
internal import RingbackBase

/// Checks what a sign-in needs first: the provider's metadata or its token endpoint, whether the account can sign in
/// with these metadata, then whether the provider accepts the client.
struct ProviderDiagnosis: Sendable {
    let provider: Provider

    private var account: Account { provider.account }
    private var rules: OAuthAccount { provider.rules }
    private var lookout: ProviderLook {
        ProviderLook(account: account, http: provider.http, clock: provider.clock, place: place)
    }

    private var place: String {
        switch rules.endpoints {
        case .issuer: account.configuredProvider == .oidc ? "issuer" : "provider"
        case .fixed: account.configuredProvider == .oauth2 ? "endpoints.token" : "provider"
        }
    }

    /// - Parameters:
    ///   - isOfService: the account awaits no callback and redeems no code.
    ///   - session: the account's session, if there is one.
    func diagnosis(
        isOfService: Bool, of subject: DiagnosisSubject, _ session: Session? = nil
    ) async -> Diagnosis {
        var findings: [Finding]
        // The client is checked with the metadata that were found here, so that they are requested once.
        let metadata: ProviderMetadata?
        switch rules.endpoints {
        case .issuer(let issuer):
            (findings, metadata) =
                subject == .candidateClient ? await atKnownIssuer(issuer) : await atIssuer(issuer)
            if subject == .candidate, let metadata, !metadata.isWorthCompleting {
                await provider.directory.keep(metadata, of: account, issuer: issuer)
            }
        case .fixed(let fixed): (findings, metadata) = (await atEndpoints(fixed), fixed)
        }
        if let metadata, !metadata.unusableMembers.isEmpty {
            let host = HTTPRequest(url: metadata.tokenEndpoint).host
            let causes = metadata.unusableMembers.joined(separator: "; ")
            let text = "The metadata of \(host) have members that are not used: \(causes)."
            findings.append(Finding(.metadata, .warning, .stated(text)))
        }
        if let metadata, let finding = provider.proofs.finding(metadata, session) { findings.append(finding) }
        guard !isOfService else { return Diagnosis(findings, awaitsCallbacks: false) }
        if !findings.contains(where: { $0.level == .wrong }), let metadata, let mistake = await mistake(metadata) {
            findings.append(mistake)
        }
        if subject == .candidate, let endpoint = metadata?.registrationEndpoint {
            let host = HTTPRequest(url: endpoint).host
            findings.append(
                Finding(.client, .ok, .stated("\(host) registers clients that ask for it."), .registrationOffered))
        }
        if account.scopes.contains("offline_access"), session?.isRefreshable != true, let metadata,
            metadata.scopesSupported?.contains("offline_access") == false
        {
            let host = HTTPRequest(url: metadata.tokenEndpoint).host
            let text =
                "\(host) does not list offline_access among its scopes. It may reject a sign-in that requests it, or "
                + "give a refresh token all the same."
            findings.append(Finding(.metadata, .warning, .stated(text), setting: "scopes"))
        }
        let asksClient = subject != .candidate || (rules.clientSecret == nil && rules.clientKey == nil)
        let client = metadata.map {
            ClientDiagnosis(provider: provider, metadata: $0, isCandidate: subject != .configured)
        }
        // The page of a provider that compares the port rejects the client too. The port is the more exact finding.
        if subject == .configured, !findings.contains(where: { $0.level == .wrong }),
            let finding = await client?.portFinding()
        {
            findings.append(finding)
        }
        if asksClient, !findings.contains(where: { $0.level == .wrong }),
            let finding = await client?.finding(of: subject)
        {
            findings.append(finding)
        }
        return Diagnosis(findings)
    }

    private func mistake(_ metadata: ProviderMetadata) async -> Finding? {
        do throws(BrokerError) {
            do throws(BrokerError) {
                try provider.check(metadata, for: account.scopes, by: .browser)
            } catch {
                // A sign-in uses the documents of both URLs if the first one is incomplete.
                guard case .issuer(let issuer) = rules.endpoints, metadata.isWorthCompleting else { throw error }
                let whole = await ProviderDirectory.complete(metadata, account, issuer, provider.http, known: nil)
                try provider.check(whole, for: account.scopes, by: .browser)
            }
            return nil
        } catch {
            return Finding(.metadata, mistake: error)
        }
    }

    /// Sends a GET, which is not a token request. Every response below status 500 shows that the endpoint exists.
    private func atEndpoints(_ metadata: ProviderMetadata) async -> [Finding] {
        let token = await lookout.look(HTTPRequest(url: metadata.tokenEndpoint), as: .provider) { response in
            response.status < 500
                ? .success(.stated("responds at its token endpoint")) : .failure(ProviderLook.status(response))
        }
        guard let page = try? WebURL(parsing: metadata.authorizationEndpoint),
            page.origin != (try? WebURL(parsing: metadata.tokenEndpoint))?.origin
        else { return token }
        let place = page.origin + page.path
        return token
            + (await lookout.look(HTTPRequest(url: place), as: .page, setting: "endpoints.authorization") {
                $0.status < 500
                    ? .success(.stated("responds at its authorization endpoint")) : .failure(ProviderLook.status($0))
            }.filter { $0.check == .page || $0.level == .wrong })
    }

    private func atKnownIssuer(_ issuer: String) async -> ([Finding], ProviderMetadata?) {
        do throws(BrokerError) {
            return ([], try await provider.metadata())
        } catch {
            return await atIssuer(issuer)
        }
    }

    /// Requests the metadata, from the second URL if the first has none. Returns them too if they can be used.
    private func atIssuer(_ issuer: String) async -> ([Finding], ProviderMetadata?) {
        guard let requests = try? ProviderMetadata.discoveryRequests(issuer: issuer) else {
            let text = "The issuer is not an https URL."
            return ([Finding(.discovery, .wrong, .stated(text), .configuration, setting: "issuer")], nil)
        }
        var first: [Finding] = []
        for request in requests {
            var metadata: ProviderMetadata?
            let found = await lookout.look(request, as: .discovery) { response in
                do throws(OAuthError) {
                    metadata = try ProviderMetadata(parsing: response, issuer: issuer)
                    return .success(.stated("publishes metadata of this issuer"))
                } catch {
                    return .failure(reason(error, response, issuer))
                }
            }
            if found.contains(where: { $0.check == .discovery && $0.level == .ok }) { return (found, metadata) }
            if first.isEmpty { first = found }
            // If the host cannot be reached at the first URL, the second URL fails too.
            if !found.contains(where: { $0.check == .clock }) { break }
        }
        return (first, nil)
    }

    private func reason(_ error: OAuthError, _ response: HTTPResponse, _ issuer: String) -> ProviderLook.Trouble {
        switch error {
        case .invalid(_, let reason):
            var trouble = ProviderLook.Trouble(
                .stated("publishes no usable metadata of this issuer: \(reason)"), setting: "issuer")
            trouble.stated = stated(response, issuer)
            return trouble
        case .misconfigured(let reason): return ProviderLook.Trouble(.stated("cannot be used: \(reason)"))
        default: return ProviderLook.status(response)
        }
    }

    /// The issuer in the metadata, if it differs and is at the same host: the user has mistyped the rest. The issuer of
    /// another host is not passed on, since the responding server could name any issuer.
    private func stated(_ response: HTTPResponse, _ issuer: String) -> String? {
        guard let text = (try? JSON(parsing: response.body.revealedBytes()))?["issuer"]?.string, text != issuer,
            let stated = try? WebURL(parsing: text), let configured = try? WebURL(parsing: issuer), stated.isSecure
        else { return nil }
        let isHere = stated.isLoopback && configured.isLoopback
        return stated.host == configured.host || isHere ? text : nil
    }
}
