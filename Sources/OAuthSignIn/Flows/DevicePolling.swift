internal import BrokerCore
internal import OAuth

/// Asks the provider, never too early and never after the end, whether the user has approved on the other device.
extension OAuthProvider {
    /// Questions until the flow ends; where only time can end it, by its own deadline. While a question is on its way the
    /// flow's claim is held, since an approval that comes then came in time. A response is worked on even while the daemon
    /// shuts down: the provider says it once.
    func poll(_ flow: Flow, _ device: DeviceFlow, in context: SignInContext) async {
        while await context.isPending(flow.id) {
            switch device.pace.step(at: provider.clock.bootInstant) {
            case .over: return
            case .sleep(let pause): guard (try? await provider.clock.sleep(pause)) != nil else { return }
            case .ask: guard await context.redeem(.poll, of: flow) != nil else { return }
            }
        }
    }

    /// One question.
    func ask(_ device: DeviceFlow, of flow: Flow, in context: SignInContext) async throws(BrokerError) -> Redemption {
        // An approval that could not be kept is not asked for: a locked vault may be opened before the code expires.
        guard await canBeKept(in: context) else {
            device.pace.answered(.pending, at: provider.clock.bootInstant)
            return .waiting(nil)
        }
        switch try await provider.ask(device) {
        case .waiting(let event):
            device.pace.answered(event, at: provider.clock.bootInstant)
            return .waiting(nil)
        case .granted(let answer): return .session(try await provider.session(of: answer, device), flow.opening)
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
