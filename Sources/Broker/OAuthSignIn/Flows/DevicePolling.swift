internal import BrokerCore
internal import OAuth

/// Polls the token endpoint (RFC 8628 section 3.4) at the allowed interval until the codes expire.
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

    /// Sends one polling request.
    func ask(_ device: DeviceFlow, of flow: Flow, in context: SignInContext) async throws(BrokerError) -> Redemption {
        // Do not request tokens that could not be stored. A locked vault may be unlocked before the code expires.
        guard await canBeKept(in: context) else {
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

    private func canBeKept(in context: SignInContext) async -> Bool {
        do throws(BrokerError) {
            try await context.admitSession(provider.account.name)
            return true
        } catch {
            return false
        }
    }
}
