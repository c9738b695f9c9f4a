internal import BrokerCore
internal import HTTPMessages
internal import OAuth

/// Reports what an MCP server announces now, and what has changed since the last sign-in. It changes nothing.
struct MCPDiagnosis: Sendable {
    let account: Account
    let kind: MCPAccount
    let tools: ProviderTools

    func diagnosis() async -> Diagnosis {
        let server = kind.server
        let look = ProviderLook(account: account, http: tools.http, clock: tools.clock, place: "mcp")
        var response: HTTPResponse?
        var findings = await look.look(server.probe(), as: .provider) { seen in
            response = seen
            return .success(.oauth(.mcpResponds(status: seen.status)))
        }
        guard let response else { return Diagnosis(findings) }
        do throws(BrokerError) {
            let walk = MCPWalk(account: account, kind: kind, tools: tools)
            findings += await self.findings(about: try await walk.announcement(after: response))
        } catch {
            findings.append(
                Finding(
                    .discovery, .wrong, error.finding(at: server.url.place), .badResponse, setting: "mcp",
                    url: server.url.text))
        }
        return Diagnosis(findings)
    }

    private func findings(about announcement: MCPAnnouncement) async -> [Finding] {
        let clients = MCPClients(account: account, kind: kind, tools: tools)
        let issuer = announcement.connection.issuer
        let way = clients.way(at: announcement)
        var findings = [
            Finding(
                .discovery, .ok,
                .oauth(
                    .mcpAnnounces(
                        host: kind.server.url.place, issuer: issuer, client: way,
                        scopes: announcement.usualScopes)))
        ]
        if way == .none {
            findings.append(
                Finding(
                    .client, .wrong,
                    .oauth(.mcpNeedsClient(account.name, issuer: issuer, isDocumentUnsafe: false)), .configuration,
                    setting: "client_id"))
        }
        let record = try? await clients.record()
        if let former = record?.clients.last, record?.client(at: issuer) == nil {
            findings.append(
                Finding(
                    .discovery, .warning,
                    .oauth(.mcpIssuerChanged(account.name, former: former.issuer, issuer: issuer)), .badResponse,
                    setting: "mcp"))
        }
        return findings
    }
}

extension BrokerError {
    /// The finding about a server that could not be reached, or whose documents cannot be used.
    fileprivate func finding(at host: String) -> Reason {
        switch self {
        case .misconfigured(let reason), .provider(.invalidResponse(let reason)): reason
        case .provider(.unreachable(_, let reason, _)), .provider(.untrusted(_, let reason)):
            .both(.oauth(.mcpNotAsked(host: host)), reason)
        default: .oauth(.mcpNotAsked(host: host))
        }
    }
}
