internal import RingbackBase
internal import SessionVault

extension SessionManager {
    func changedElsewhere(_ slot: VaultSlot?) {
        let names = slot.map { [AccountName($0.account)].compactMap { $0 } } ?? Array(lanes.keys)
        for name in names {
            guard let lane = lanes[name], slot == nil || lane.account.slot == slot else { continue }
            enqueue(name) { manager in
                // Not before: a refresh that is in its turn now may be about to wait for this change.
                defer { manager.resume(name) }
                guard manager.isOpen, let lane = manager.lane(lane.id), lane.state.isLoaded else { return }
                let found = await manager.store.load([(name, lane.account.slot)], with: manager.work)
                for loaded in found { await manager.applyRemoteChange(loaded, lane.id) }
            }
        }
    }

    /// Applies what another host has stored, in a turn of the account's lane.
    func applyRemoteChange(_ loaded: LaneState.Loaded, _ id: LaneID) async {
        guard let former = lane(id), take(.changedElsewhere(loaded), id), let account = lanes[id.account]?.account,
            let observer = observer(of: account)
        else { return }
        switch (former.state.session, lane(id)?.state.session) {
        case (let old?, let new?) where old.isSameUser(as: new):
            await observer.changed(old, to: new, of: account, isAsked: false)
        case (let old, let new?): await observer.opened(new, over: old, of: account, isAsked: false)
        case (let old?, nil): await observer.leaving(old, of: account)
        case (nil, nil): break
        }
    }

    func resume(_ name: AccountName) {
        schedule.remove(.resume(name))
        for refresh in waitingRefreshes.removeValue(forKey: name) ?? [] { queue(refresh) }
    }
}

extension BrokerError {
    /// How long another host may be at the session, if that is why nothing was sent.
    var waitForOtherHost: Duration? {
        if case .vaultUnreachable(.session(.heldElsewhere(_, let wait)), _) = self { wait } else { nil }
    }

    /// The error for a caller who comes later, with the seconds until the next attempt.
    func waiting(_ seconds: Int) -> BrokerError {
        switch self {
        case .vaultUnreachable(.session(.heldElsewhere(let name, _)), _):
            .vaultUnreachable(.session(.heldElsewhere(name, wait: .seconds(seconds))), retryAfter: seconds)
        case .vaultUnreachable(let reason, _): .vaultUnreachable(reason, retryAfter: seconds)
        default: self
        }
    }
}

/// Refresh tokens that only other hosts received, the newest first.
struct RemoteTokens: Sendable {
    var newer: [Secret] = []
    var older: [Secret] = []

    /// The order in which the tokens are presented. With a request for a downscoped token, which may fail because of its
    /// scopes, only the newest is.
    func joined(with own: [Secret], for key: TokenKey) -> [Secret] {
        guard !own.isEmpty else { return own }
        var known: Set<Secret> = []
        let all = (newer + own + older).filter { known.insert($0).inserted }
        return key == .own ? all : newer.isEmpty ? own : Array(all.prefix(1))
    }
}
