internal import BrokerCore
internal import Cryptography
internal import OAuth
internal import Secrets
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
    let authorization: DeviceAuthorization
    /// When the codes were received.
    let receivedAt: BootInstant
    /// When the next polling request is due. The requests and the loop that waits share it.
    let pace: DevicePaceKeeper
    /// Random and never sent, so no callback can have it.
    let key = RandomToken.bytes(32)

    /// What the user is shown.
    var shown: DeviceCode {
        DeviceCode(
            userCode: authorization.userCode, verificationURI: authorization.verificationURI,
            verificationURIComplete: authorization.verificationURIComplete)
    }

    init(
        metadata: ProviderMetadata, scopes: [String], registration: ClientRegistration, mcp: MCPConnection? = nil,
        authorization: DeviceAuthorization, receivedAt: BootInstant
    ) {
        self.mcp = mcp
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

/// A device flow's schedule, shared by its polling requests.
final class DevicePaceKeeper: Sendable {
    private let schedule: Mutex<DeviceSchedule>

    init(_ schedule: DeviceSchedule) { self.schedule = Mutex(schedule) }

    func step(at now: BootInstant) -> DeviceSchedule.Step { schedule.withLock { $0.step(at: now) } }
    func answered(_ event: DevicePace.Event, at now: BootInstant) {
        schedule.withLock { $0.answered(event, at: now) }
    }
}
