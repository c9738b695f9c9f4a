internal import BrokerCore
internal import HTTPMessages
internal import OAuth
internal import Secrets

/// Sign-ins on another device as conversations with the provider: the codes, and the questions after them.
extension Provider {
    /// Asks for codes.
    ///
    /// - Throws: `methodUnsupported` for a provider that offers none.
    func authorizeDevice(_ request: SignInRequest) async throws(BrokerError) -> DeviceFlow {
        let metadata = try await metadata()
        guard let endpoint = metadata.deviceAuthorizationEndpoint else {
            throw .methodUnsupported(Provider.noDevices(of: account), method: "device")
        }
        let scopes = metadata.requestable(request.scopes ?? account.scopes)
        try check(metadata, for: scopes)
        let parameters = account.authorizationParameters + request.parameters
        let fetched = try await self.registration(metadata)
        let response = try await send(as: fetched, at: metadata) { registration in
            DeviceAuthorization.request(
                scopes: scopes, additionalParameters: parameters, registration: registration, endpoint: endpoint)
        }
        // The first request may have shown how the client's secret is to be sent.
        let registration = await adapted(fetched, to: metadata)
        do throws(OAuthError) {
            return DeviceFlow(
                metadata: metadata, scopes: scopes, registration: registration,
                authorization: try DeviceAuthorization(parsing: response, from: endpoint), answeredAt: clock.boot())
        } catch {
            throw BrokerError(error, host: HTTPRequest(url: endpoint).host).unquoting(registration.secret)
        }
    }

    private static func noDevices(of account: Account) -> String {
        let byHand =
            if case .fixed = account.endpoints {
                " If it has an address for that, write it into the account's endpoints as device_authorization."
            } else {
                ""
            }
        return "The provider of \(account.name) offers no sign-in on another device (RFC 8628).\(byHand)"
    }

    /// Asks once whether the person has said yes.
    ///
    /// - Throws: the provider's or the person's no, and whatever else ends the questions. What says nothing (no
    ///   connection, no answer, "later") is an event.
    func ask(_ flow: DeviceFlow) async throws(BrokerError) -> DeviceTokenResponse {
        var registration = flow.registration
        if registration.authentication == .privateKeyJWT {
            registration = try await self.registration(flow.metadata)
        }
        let code = flow.authorization.deviceCode
        let request = TokenRequest.deviceCode(
            code, registration: registration, endpoint: flow.metadata.tokenEndpoint)
        let response: HTTPResponse
        do throws(BrokerError) {
            response = try await account.send(request, toProvider: http)
        } catch {
            return .waiting(try Provider.silence(error))
        }
        do throws(OAuthError) {
            return try DeviceTokenResponse(reading: response)
        } catch {
            return .waiting(
                try Provider.silence(
                    BrokerError(error, deviceCodeOf: account.name, host: request.host)
                        .unquoting(code, registration.secret)))
        }
    }

    /// What is no answer at all, as an event; everything else is thrown again.
    private static func silence(_ error: BrokerError) throws(BrokerError) -> DevicePace.Event {
        switch error {
        case .provider(.unreachable), .provider(.untrusted): return .unanswered(retryAfter: nil)
        case .provider(.rateLimited(let seconds)), .provider(.unavailable(_, let seconds)),
            .provider(.failing(_, _, _, let seconds)):
            return .unanswered(retryAfter: seconds)
        default: throw error
        }
    }

    /// The session of a yes. It is this program's own question that is answered, so there is no nonce to look for; an
    /// ID token, where there is one, must be good all the same.
    func session(of answer: TokenResponse, _ flow: DeviceFlow) async throws(BrokerError) -> Session {
        let tokens: TokenSet
        do throws(OAuthError) {
            tokens = try answer.tokenSet()
        } catch {
            throw BrokerError(error, host: HTTPRequest(url: flow.metadata.tokenEndpoint).host)
                .unquoting(flow.authorization.deviceCode, flow.registration.secret)
        }
        return try await session(of: tokens, at: flow.metadata, askedFor: flow.scopes, evidence: SignInEvidence())
    }
}

extension BrokerError {
    /// RFC 8628 section 3.5 has two words of its own for the end.
    init(_ error: OAuthError, deviceCodeOf account: AccountName, host: String) {
        guard case .refused(let refusal) = error else {
            self.init(error, host: host)
            return
        }
        switch refusal.code {
        // The second is Microsoft's.
        case "access_denied", "authorization_declined": self = .accessDenied(account)
        case "expired_token":
            self = .flowExpired(
                "The sign-in of \(account) was not finished in time: \(host) says that its code has expired.")
        default: self.init(error, host: host)
        }
    }
}
