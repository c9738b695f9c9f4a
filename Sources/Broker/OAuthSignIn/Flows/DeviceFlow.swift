internal import BrokerCore
internal import Cryptography
internal import OAuth
internal import RingbackBase
internal import Synchronization

/// A sign-in on another device (RFC 8628). It ends with the provider's response to our polling requests. There is no
/// callback, so no other program can end it.
struct DeviceFlow: Sendable {
    let metadata: ProviderMetadata
    let scopes: [String]
    /// The registration with which the codes were requested. A client assertion is made anew for each request.
    let registration: ClientRegistration
    /// Who issues the tokens, for an account at an MCP server.
    let mcp: MCPConnection?
    /// The key to which the tokens are to be bound; nil if they are not.
    let proofKey: DPoPKey?
    let authorization: DeviceAuthorization
    let receivedAt: BootInstant
    /// When the next polling request is due. The requests and the loop that waits share it.
    let pace: DevicePaceKeeper
    /// Random and never sent, so no callback can have it.
    let key = RandomToken.bytes(32)

    var shown: DeviceCode {
        DeviceCode(
            userCode: authorization.userCode, verificationURI: authorization.verificationURI,
            verificationURIComplete: authorization.verificationURIComplete)
    }

    init(
        metadata: ProviderMetadata, scopes: [String], registration: ClientRegistration, mcp: MCPConnection? = nil,
        proofKey: DPoPKey? = nil, authorization: DeviceAuthorization, receivedAt: BootInstant
    ) {
        self.mcp = mcp
        self.proofKey = proofKey
        self.metadata = metadata
        self.scopes = scopes
        self.registration = registration
        self.authorization = authorization
        self.receivedAt = receivedAt
        pace = DevicePaceKeeper(
            DeviceSchedule(
                interval: .seconds(authorization.interval), life: .seconds(authorization.expiresIn),
                receivedAt: receivedAt))
    }
}

extension DeviceFlow: AwaitedSignIn {
    var redirectURI: String { "" }
    var authorizationURL: String { "" }
    var waitingFor: WaitingFor { .device }
    var proofs: Set<Proof.Kind> { [.poll] }
    var isAccompanied: Bool { true }

    var details: AwaitedDetails {
        var details = AwaitedDetails()
        details.device = shown
        return details
    }

    func recognize(_ arrival: Arrival, of standing: FlowStanding) -> Recognition { .foreign }

    func expiry(of flow: Flow) -> Reason {
        .oauth(
            .noDeviceCode(
                flow.account.name, seconds: flow.duration.wholeSeconds, userCode: authorization.userCode,
                page: authorization.verificationURI))
    }
}

final class DevicePaceKeeper: Sendable {
    private let schedule: Mutex<DeviceSchedule>

    init(_ schedule: DeviceSchedule) { self.schedule = Mutex(schedule) }

    func step(at now: BootInstant) -> DeviceSchedule.Step { schedule.withLock { $0.step(at: now) } }
    func answered(_ event: DevicePace.Event, at now: BootInstant) {
        schedule.withLock { $0.answered(event, at: now) }
    }
}

extension OAuthProvider {
    /// Polls until the flow ends. When the codes have expired, polling stops, and the flow ends at its own deadline.
    /// While a request is in progress, it holds the flow's claim: an approval that arrives then is in time. A response
    /// is processed even while the daemon shuts down, because the provider sends the tokens only once.
    func poll(_ flow: Flow, _ device: DeviceFlow, in context: SignInContext) async {
        while await context.isPending(flow.id) {
            switch device.pace.step(at: provider.clock.bootInstant) {
            case .over: return
            case .sleep(let pause): guard (try? await provider.clock.sleep(pause)) != nil else { return }
            case .ask: guard await context.redeem(.poll, of: flow) != nil else { return }
            }
        }
    }

    func ask(_ device: DeviceFlow, of flow: Flow, in context: SignInContext) async throws(BrokerError) -> Redemption {
        // Do not request tokens that could not be stored. A locked vault may be unlocked before the code expires.
        guard (try? await context.admitSession(provider.account.name)) != nil else {
            device.pace.answered(.pending, at: provider.clock.bootInstant)
            return .waiting(nil)
        }
        switch try await provider.ask(device) {
        case .waiting(let event):
            device.pace.answered(event, at: provider.clock.bootInstant)
            return .waiting(nil)
        case .granted(let response): return .session(try await provider.session(of: response, device), flow.opening)
        }
    }
}

extension Provider {
    /// Requests the device code and the user code.
    ///
    /// - Throws: `methodUnsupported` for a provider that offers none.
    func authorizeDevice(_ request: SignInRequest) async throws(BrokerError) -> DeviceFlow {
        let metadata = try await metadata()
        guard let endpoint = metadata.deviceAuthorizationEndpoint else {
            let isConfigured = if case .fixed = rules.endpoints { true } else { false }
            let reason = Reason.oauth(.noDeviceEndpoint(account.name, isConfigured: isConfigured))
            throw .methodUnsupported(reason, method: "device")
        }
        let scopes = request.scopes ?? account.scopes
        try check(metadata, for: scopes, by: .device)
        let parameters = account.authorizationParameters + request.parameters
        let proofKey = try proofs.newKey(metadata)
        let fetched = try await self.registration(metadata)
        let response = try await send(as: fetched, at: metadata, under: nil) { registration in
            DeviceAuthorization.request(
                scopes: scopes, resource: rules.mcp?.resource, additionalParameters: parameters,
                registration: registration, endpoint: endpoint)
        }
        // The first request may have shown which authentication method the provider accepts.
        let registration = await adapted(fetched, to: metadata)
        do throws(OAuthError) {
            return DeviceFlow(
                metadata: metadata, scopes: scopes, registration: registration, mcp: rules.mcp, proofKey: proofKey,
                authorization: try DeviceAuthorization(parsing: response, from: endpoint),
                receivedAt: clock.bootInstant)
        } catch {
            throw BrokerError(error, of: response, host: HTTPRequest(url: endpoint).host)
                .unquoting(registration.secret)
        }
    }

    /// Asks once whether the user has approved. Throws an error that ends the polling. No connection, no response and
    /// "later" are returned as events.
    func ask(_ flow: DeviceFlow) async throws(BrokerError) -> DeviceTokenResponse {
        var registration = flow.registration
        if registration.authentication == .privateKeyJWT {
            registration = try await self.registration(flow.metadata)
        }
        let code = flow.authorization.deviceCode
        let endpoint = flow.metadata.tokenEndpoint
        let response: HTTPResponse
        do throws(BrokerError) {
            response = try await proofs.send(provenBy: flow.proofKey) {
                TokenRequest.deviceCode(
                    code, resource: rules.mcp?.resource, registration: registration, endpoint: endpoint)
            }
        } catch {
            return .waiting(try Provider.silence(error))
        }
        do throws(OAuthError) {
            return try DeviceTokenResponse(reading: response)
        } catch {
            return .waiting(
                try Provider.silence(
                    BrokerError(error, deviceCodeOf: account.name, host: HTTPRequest(url: endpoint).host)
                        .unquoting(code, registration.secret)))
        }
    }

    private static func silence(_ error: BrokerError) throws(BrokerError) -> DevicePace.Event {
        switch error {
        case .provider(.unreachable), .provider(.untrusted), .provider(.wrongScheme):
            return .unanswered(retryAfter: nil)
        case .provider(.rateLimited(let seconds)), .provider(.unavailable(_, let seconds)),
            .provider(.failing(_, _, _, let seconds)):
            return .unanswered(retryAfter: seconds.map { .seconds($0) })
        default: throw error
        }
    }

    /// The session after the approval. The response belongs to our own request, so no nonce is needed.
    func session(of response: TokenResponse, _ flow: DeviceFlow) async throws(BrokerError) -> Session {
        let tokens: TokenSet
        do throws(OAuthError) {
            tokens = try response.tokenSet(under: proofs.tokenUse(hasKey: flow.proofKey != nil))
        } catch {
            throw BrokerError(error, host: HTTPRequest(url: flow.metadata.tokenEndpoint).host)
                .unquoting(flow.authorization.deviceCode, flow.registration.secret)
        }
        return try await session(
            of: tokens, boundTo: flow.proofKey, at: flow.metadata, askedFor: flow.scopes, evidence: SignInEvidence())
    }
}

extension BrokerError {
    /// RFC 8628 section 3.5 has two error codes of its own that end a flow.
    init(_ error: OAuthError, deviceCodeOf account: AccountName, host: String) {
        guard case .refused(let errorResponse) = error else {
            self.init(error, host: host)
            return
        }
        switch errorResponse.code {
        // The second code is used by Microsoft.
        case "access_denied", "authorization_declined": self = .accessDenied(account)
        case "expired_token":
            let text = "The sign-in of \(account) was not finished in time: \(host) reports that its code has expired."
            self = .flowExpired(.stated(text))
        default: self.init(error, host: host)
        }
    }
}

/// When a device flow sends its polling requests. Callers pass the time since boot: setting the clock changes nothing,
/// and after a suspension one request is due, not many.
struct DeviceSchedule: Sendable, Equatable {
    enum Step: Sendable, Equatable {
        /// Sleep for at most this long, then call `step` again.
        case sleep(Duration)
        case ask
        /// No more requests are sent.
        case over
    }

    private var pace: DevicePace
    private(set) var due: BootInstant
    let end: BootInstant

    /// Timers do not count the time that the machine is suspended.
    private static let longestSleep: Duration = .seconds(30)

    init(interval: Duration, life: Duration, receivedAt: BootInstant) {
        pace = DevicePace(interval: interval)
        due = receivedAt + pace.pause
        end = receivedAt + life
    }

    func step(at now: BootInstant) -> Step {
        if max(due, now) > end { return .over }
        // Sleep one millisecond more: the clock rounds down.
        return now > due ? .ask : .sleep(min(due - now + .milliseconds(1), DeviceSchedule.longestSleep))
    }

    mutating func answered(_ event: DevicePace.Event, at now: BootInstant) {
        pace.note(event)
        due = now + pace.pause
    }
}
