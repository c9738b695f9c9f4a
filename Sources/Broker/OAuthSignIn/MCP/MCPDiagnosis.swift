internal import BrokerCore
internal import OAuth
internal import RingbackBase

/// Reports what an MCP server announces now, what has changed since the last sign-in, and whether the issuer knows the
/// client. It changes nothing but the mark of a registered client that the issuer does not know.
struct MCPDiagnosis: Sendable {
    let account: Account
    let kind: MCPAccount
    let tools: ProviderTools
    let session: Session?

    func diagnosis() async -> Diagnosis {
        let server = kind.server
        let look = ProviderLook(account: account, http: tools.http, clock: tools.clock, place: "mcp")
        var response: HTTPResponse?
        var findings = await look.look(server.probe(), as: .provider) { seen in
            response = seen
            return .success(.oauth(.mcpResponds(status: seen.status)))
        }
        guard let response else { return Diagnosis(findings) }
        guard kind.needsToken else {
            if response.status == 401 {
                let text =
                    "\(server.url.place) demands a token, and \(account.name) has sign_in = false. Remove that, and "
                    + "sign in."
                findings.append(Finding(.provider, .wrong, .stated(text), .configuration, setting: "sign_in"))
            }
            return Diagnosis(findings, awaitsCallbacks: false)
        }
        do throws(BrokerError) {
            let walk = MCPWalk(account: account, kind: kind, tools: tools)
            let announcement = try await walk.announcement(after: response)
            findings.append(announced(announcement))
            guard kind.rules.grant == nil else {
                findings += [profileFinding(announcement), await tokenFinding()].compactMap(\.self)
                return Diagnosis(findings, awaitsCallbacks: false)
            }
            try walk.check(announcement)
            findings += await self.findings(about: announcement)
        } catch {
            if case .misconfigured(let reason) = error, case .mcpNeedsNoSignIn? = reason.ofOAuth {
                findings.append(Finding(.discovery, .warning, reason, .configuration, setting: "sign_in"))
                return Diagnosis(findings)
            }
            findings.append(
                Finding(
                    .discovery, .wrong, error.finding(at: server.url.place), .badResponse, setting: "mcp",
                    url: server.url.text))
        }
        return Diagnosis(findings)
    }

    private var clients: MCPClients { MCPClients(account: account, kind: kind, tools: tools) }

    private func announced(_ announcement: MCPAnnouncement) -> Finding {
        let isService = kind.rules.grant != nil
        let reason = OAuthReason.mcpAnnounces(
            host: kind.server.url.place, issuer: announcement.connection.issuer,
            client: isService ? .configured : clients.way(at: announcement),
            scopes: isService ? announcement.scopes : announcement.usualScopes)
        var finding = Finding(.discovery, .ok, .oauth(reason))
        finding.stated = announcement.connection.issuer
        return finding
    }

    /// The finding if the authorization server lists the grants that it takes, and assertions about users are not among
    /// them.
    private func profileFinding(_ announcement: MCPAnnouncement) -> Finding? {
        guard let upstream = kind.upstream, let listed = announcement.metadata.grantProfiles,
            !listed.contains(ProviderMetadata.identityAssertionProfile)
        else { return nil }
        let text =
            "\(announcement.connection.issuer) does not list \(ProviderMetadata.identityAssertionProfile) among the profiles "
            + "of grants that it supports. It may refuse what \(upstream) brings."
        return Finding(.metadata, .warning, .stated(text), setting: "through")
    }

    private func findings(about announcement: MCPAnnouncement) async -> [Finding] {
        let issuer = announcement.connection.issuer
        var findings: [Finding] = []
        if clients.way(at: announcement) == .none {
            let document = clients.document(at: announcement)
            let setting =
                switch document {
                case .notTaken: "client_id"
                case .missing: "client_id_metadata_url"
                case .shared: "redirect_uri"
                }
            findings.append(
                Finding(
                    .client, .wrong, .oauth(.mcpNeedsClient(account.name, issuer: issuer, document)), .configuration,
                    setting: setting))
        }
        if let client = await client(at: announcement) { findings.append(client) }
        findings += await changes(announcement)
        let asked = account.at(announcement.connection, of: kind, with: tools)
        let proofs = Prover(asked, by: asked.oauth, tools)
        if let bound = proofs.finding(announcement.metadata, session) { findings.append(bound) }
        if let token = await tokenFinding() { findings.append(token) }
        return findings
    }

    /// Whether the server accepts the session's token, by a bridge's first request. Nil for one that has expired.
    private func tokenFinding() async -> Finding? {
        let server = kind.server
        guard let session, let connection = MCPConnection(of: session, at: server), let token = session.tokens[.own],
            token.type.lowercased() == "bearer",
            (token.remaining(at: tools.clock.bootInstant) ?? .seconds(60)) > .seconds(10)
        else { return nil }
        let host = server.url.place
        guard
            let response = try? await account.send(
                server.initialization(accessToken: token.value), under: nil, at: connection, over: tools.http)
        else { return nil }
        if let end = server.ending(response, accessToken: token.value) {
            _ = try? await account.send(end, under: nil, at: connection, over: tools.http)
        }
        let isService = kind.rules.grant != nil
        if response.status == 401 {
            return isService
                ? Finding(.provider, .wrong, .stated("\(host) refuses the token of \(account.name)."), .configuration)
                : Finding(.provider, .wrong, .oauth(.mcpRefusesToken(account.name, host: host)), .signInNeeded)
        }
        if response.status == 403, let challenge = BearerChallenge(in: response.fields), challenge.demandsScopes {
            let scopes = ScopeList.union(connection.scopes, challenge.scopes)
            var finding = Finding(
                .provider, .wrong,
                .oauth(.mcpTokenLacksScopes(account.name, host: host, scopes: challenge.scopes)),
                isService ? .configuration : .signInNeeded, setting: isService ? "scopes" : nil)
            if !isService, !challenge.scopes.isEmpty { finding.scope = scopes.joined(separator: " ") }
            return finding
        }
        return (200..<300).contains(response.status)
            ? Finding(.provider, .ok, .oauth(.mcpAcceptsToken(host: host))) : nil
    }

    /// What the issuer says about the client of the session, or of the next sign-in. A registered client that the issuer
    /// does not know is marked, so that the next sign-in registers another one.
    private func client(at announcement: MCPAnnouncement) async -> Finding? {
        let issuer = announcement.connection.issuer
        let record = (try? await clients.record()) ?? MCPClientRecord()
        var connection = announcement.connection
        if let held = session.flatMap({ MCPConnection(of: $0, at: kind.server) }), held.issuer == issuer {
            connection = held
        } else if !account.clientID.isEmpty {
            connection.clientID = account.clientID
        } else if let client = record.client(at: issuer) {
            connection.clientID = client.clientID
            connection.authentication = client.authentication
            connection.hasRegisteredSecret = client.hasSecret
            connection.scopes = client.scopes
        }
        guard !connection.clientID.isEmpty else { return nil }
        var asked = account.at(connection, of: kind, with: tools)
        let client = record.clients.last { $0.issuer == issuer && $0.clientID == connection.clientID }
        asked.redirectURI = client?.redirectURI ?? account.redirectURI
        if connection.clientID == kind.clientMetadataURL {
            asked.redirectURI = account.redirectURI ?? ClientMetadataDocument.redirectURI
        }
        let provider = Provider(asked, by: asked.oauth, tools)
        let diagnosis = ClientDiagnosis(provider: provider, metadata: announcement.metadata)
        let finding = await diagnosis.finding(of: .configured)
        let hasExpiredSecret = finding?.setting == RegistrationRecord.setting
        guard hasExpiredSecret || finding?.cause == .clientRefused, clients.isRegistered(connection) else {
            return finding
        }
        await clients.replaceClient(of: connection)
        let host = HTTPRequest(url: announcement.metadata.authorizationEndpoint).host
        return Finding(
            .client, .wrong, .oauth(.mcpClientForgotten(account.name, host: host, hasExpiredSecret: hasExpiredSecret)),
            .signInNeeded, url: announcement.metadata.authorizationEndpoint)
    }

    /// What has changed since the last sign-in; without a session, since the last registration.
    private func changes(_ announcement: MCPAnnouncement) async -> [Finding] {
        let issuer = announcement.connection.issuer
        let held = session.flatMap { MCPConnection(of: $0, at: kind.server) }
        var former = held?.issuer
        if held == nil, let record = try? await clients.record(), record.client(at: issuer) == nil {
            former = record.clients.last?.issuer
        }
        if let former, former != issuer {
            let reason = OAuthReason.mcpIssuerChanged(account.name, former: former, issuer: issuer)
            return [Finding(.discovery, .warning, .oauth(reason), .signInNeeded, setting: "mcp")]
        }
        // Scopes of the configuration were chosen by the user.
        guard let held, account.scopes.isEmpty else { return [] }
        let more = announcement.usualScopes.filter { !held.scopes.contains($0) }
        guard !more.isEmpty else { return [] }
        return [Finding(.discovery, .ok, .oauth(.mcpNamesMoreScopes(account.name, scopes: more)), setting: "mcp")]
    }
}

extension BrokerError {
    fileprivate func finding(at host: String) -> Reason {
        let failure = Reason.stated("It could not be found out which authorization server \(host) has.")
        return switch self {
        case .misconfigured(let reason), .provider(.invalidResponse(let reason)): reason
        case .provider(.unreachable(_, let reason, _)), .provider(.untrusted(_, let reason)): .both(failure, reason)
        default: failure
        }
    }
}
