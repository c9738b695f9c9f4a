internal import OAuth

/// Asks the provider, never too early and never after the end, whether the person has said yes on the other device.
extension Broker {
    /// Gets the codes of a new flow.
    func device(_ account: Account, _ request: SignInRequest) async throws(BrokerError) -> Flow {
        let provider = Provider(account: account, http: http, directory: directory, clock: clock)
        let device = try await provider.authorizeDevice(request)
        return Flow(
            .device(device), account: account, request: request, atMost: device.authorization.expiresIn, by: clock)
    }

    /// Questions until the flow ends; where only time can end it, by its own deadline.
    func poll(_ flow: Flow, _ device: DeviceFlow) {
        work.startTimer {
            let authorization = device.authorization
            var schedule = DeviceSchedule(
                interval: authorization.interval, life: authorization.expiresIn, answeredAt: device.answeredAt)
            while await flowRegistry.isPending(flow.id) {
                switch schedule.step(at: clock.boot()) {
                case .over: return
                case .sleep(let milliseconds):
                    guard (try? await clock.sleep(.milliseconds(milliseconds))) != nil else { return }
                case .ask:
                    guard let event = await question(flow, device) else { return }
                    schedule.answered(event, at: clock.boot())
                }
            }
        }
    }

    /// One question; nil once there is nothing more to ask. A yes is worked on even while the daemon shuts down: the
    /// provider says it once.
    private func question(_ flow: Flow, _ device: DeviceFlow) async -> DevicePace.Event? {
        let asking = work.start { () -> DevicePace.Event? in
            guard let verdict = await flowRegistry.beginQuestion(flow.id) else { return nil }
            let event = await answer(flow, device)
            if event == nil {
                verdict.fulfil(.ended)
            } else {
                await flowRegistry.endQuestion(flow.id)
            }
            return event
        }
        return await asking.wait() ?? nil
    }

    private func answer(_ flow: Flow, _ device: DeviceFlow) async -> DevicePace.Event? {
        let provider = Provider(account: flow.account, http: http, directory: directory, clock: clock)
        // A yes that could not be kept is not asked for: a locked vault may be opened before the code expires.
        guard await canBeKept(flow.account.name) else { return .pending }
        do throws(BrokerError) {
            switch try await provider.ask(device) {
            case .waiting(let event): return event
            case .granted(let answer):
                try await open(try await provider.session(of: answer, device), flow, provider)
                await flowRegistry.finish(flow.id, as: .completed)
            }
        } catch {
            switch error {
            case .flowExpired: await flowRegistry.finish(flow.id, as: .expired(error))
            default: await flowRegistry.finish(flow.id, as: .failed(error))
            }
        }
        return nil
    }

    private func canBeKept(_ account: AccountName) async -> Bool {
        do throws(BrokerError) {
            try await sessionManager.admitsSession(account)
            return true
        } catch {
            return false
        }
    }

    private func open(_ session: Session, _ flow: Flow, _ provider: Provider) async throws(BrokerError) {
        guard await flowRegistry.settle(flow.id) else {
            // Nobody wants it any more: what the provider has given is given back.
            _ = try? await provider.revoke(session)
            throw .flowCancelled("The sign-in of \(flow.account.name) was withdrawn before it was done.")
        }
        try await open(session, for: flow.account, switchingSubject: flow.request.switchesSubject)
    }
}
