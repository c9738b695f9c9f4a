internal import BrokerCore
internal import HTTPMessages
internal import OAuth

/// What a sign-in would meet first: the provider's metadata, or its token endpoint, and then whether it knows the client.
struct ProviderDiagnosis: Sendable {
    let provider: Provider

    private var account: Account { provider.account }
    private var lookout: ProviderLook {
        ProviderLook(account: account, http: provider.http, clock: provider.clock)
    }

    /// - Parameter isOfService: no user comes back, and no code is redeemed.
    func diagnosis(isOfService: Bool) async -> Diagnosis {
        var findings: [Finding]
        switch account.endpoints {
        case .issuer(let issuer): findings = await atIssuer(issuer)
        case .fixed(let metadata):
            // A GET is no token request: whatever is answered, somebody is there.
            findings = await lookout.look(HTTPRequest(url: metadata.tokenEndpoint), as: "provider") { response in
                response.status < 500
                    ? .success("answers at its token endpoint") : .failure(ProviderLook.status(response))
            }
        case .unsupported(let reason):
            return Diagnosis([Finding("provider", .wrong, reason)], awaitsCallbacks: false)
        }
        guard !isOfService else { return Diagnosis(findings, awaitsCallbacks: false) }
        if !findings.contains(where: { $0.level == .wrong }), let client = await clientFinding() {
            findings.append(client)
        }
        return Diagnosis(findings)
    }

    /// Both places of metadata are asked for, as a sign-in would.
    private func atIssuer(_ issuer: String) async -> [Finding] {
        guard let requests = try? ProviderMetadata.discoveryRequests(issuer: issuer) else {
            return [Finding("discovery", .wrong, "The issuer is not an https URL.", command: "ringback config check")]
        }
        var first: [Finding] = []
        for request in requests {
            let found = await lookout.look(request, as: "discovery") { response in
                do throws(OAuthError) {
                    _ = try ProviderMetadata(parsing: response, issuer: issuer)
                    return .success("publishes metadata of this issuer")
                } catch {
                    return .failure(reason(error, response))
                }
            }
            if found.contains(where: { $0.check == "discovery" && $0.level == .ok }) { return found }
            if first.isEmpty { first = found }
            // Who cannot be reached at one place cannot be at the other.
            if !found.contains(where: { $0.check == "clock" }) { break }
        }
        return first
    }

    private func reason(_ error: OAuthError, _ response: HTTPResponse) -> ProviderLook.Trouble {
        switch error {
        case .invalid(_, let reason): ProviderLook.Trouble("publishes no usable metadata: \(reason)")
        case .misconfigured(let reason): ProviderLook.Trouble("cannot be used: \(reason)")
        default: ProviderLook.status(response)
        }
    }
}
