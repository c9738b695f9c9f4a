public import Adapters
public import BrokerCore
internal import Synchronization

/// Exchanges tokens of accounts for credentials of the roles that the configuration names, and keeps the credentials in
/// memory until they are about to expire or their session ends.
///
/// There is one exchange at a time for an account; whoever asks meanwhile waits for it. Credentials of a session that was
/// closed or replaced during the exchange are given to nobody.
public final class RoleKeeper: Sendable {
    private enum Outcome: Sendable {
        case exchanged(Result<RoleCredentials, ExchangeFailure>)
        /// The session was closed or replaced, or the configuration was changed.
        case overtaken
    }

    private struct Held {
        let credentials: RoleCredentials
        let expiry: Deadline
        /// How long they were valid when they came.
        let lifetime: Duration

        init(_ credentials: RoleCredentials, by clock: BrokerClock) {
            self.credentials = credentials
            expiry = Deadline(at: WallInstant(seconds: credentials.expiresAt), by: clock)
            lifetime = expiry.remaining(at: clock.bootInstant)
        }

        /// They are replaced when less than this of their life is left.
        var margin: Duration { min(RoleKeeper.margin, lifetime / 2) }

        func issued(by clock: BrokerClock) -> RoleCredentials {
            var issued = credentials
            issued.expiresAt = expiry.wall(by: clock).seconds
            return issued
        }
    }

    private struct Lane {
        var role: AssumedRole
        var held: Held?
        /// The exchange that runs. Only its own outcome is kept.
        var running: Promise<Outcome>?
    }

    /// AWS's libraries ask again at every use when less than 15 minutes are left.
    private static let margin: Duration = .seconds(960)
    /// How long a caller waits for an exchange.
    private static let patience: Duration = .seconds(30)
    /// How often a caller whose exchange was overtaken asks again.
    private static let attempts = 3

    let broker: Broker
    private let lanes = Mutex<[AccountName: Lane]>([:])
    private var clock: BrokerClock { broker.signInContext.tools.clock }

    public init(_ broker: Broker) { self.broker = broker }

    /// Takes a fact of the broker. Called in the turn of the change that it tells of.
    @Sendable public func note(_ fact: BrokerFact) {
        switch fact {
        case .sessionClosed(let account, _), .sessionEnded(let account, _, _), .sessionOpened(let account, _, _):
            forget { $0 == account }
        case .vaultLocked: forget { _ in true }
        default: return
        }
    }

    private func forget(_ isConcerned: (AccountName) -> Bool) {
        let overtaken = lanes.withLock { lanes in
            lanes.filter { isConcerned($0.key) }.compactMap { name, lane in
                lanes[name] = Lane(role: lane.role)
                return lane.running
            }
        }
        overtaken.forEach { $0.fulfil(.overtaken) }
    }

    /// Takes over the configuration's roles, at start and at every reload. Credentials of other roles are forgotten.
    public func configure(_ roles: [AssumedRole]) {
        let overtaken = lanes.withLock { lanes in
            var next: [AccountName: Lane] = [:]
            for role in roles {
                let former = lanes[role.account]
                next[role.account] = former?.role == role ? former : Lane(role: role)
            }
            defer { lanes = next }
            return lanes.compactMap { name, lane in next[name]?.role == lane.role ? nil : lane.running }
        }
        overtaken.forEach { $0.fulfil(.overtaken) }
    }

    /// The credentials of an account's role.
    ///
    /// - Throws: also while the vault is locked or the session is being closed.
    public func credentials(of name: AccountName) async throws(ExchangeFailure) -> RoleCredentials {
        for _ in 0..<RoleKeeper.attempts {
            try await requireSession(of: name)
            let (outcome, held) = try await take(name)
            switch outcome {
            case nil: return try fallback(held, .broker(Task.isCancelled ? .cancelled : .timedOut))
            case .overtaken?: continue
            case .exchanged(.success(let credentials))?: return credentials
            case .exchanged(.failure(let error))?: return try fallback(held, error)
            }
        }
        throw .broker(.signInRequired(name))
    }

    /// Credentials that are still valid are given if new ones cannot be had now.
    private func fallback(_ held: Held?, _ error: ExchangeFailure) throws(ExchangeFailure) -> RoleCredentials {
        guard let held, error.isTransient, held.expiry.remaining(at: clock.bootInstant) > .zero else { throw error }
        return held.issued(by: clock)
    }

    private func requireSession(of name: AccountName) async throws(ExchangeFailure) {
        let sessions = broker.signInContext.sessions
        do throws(BrokerError) {
            _ = try await sessions.account(name)
        } catch {
            throw .broker(error)
        }
        // The account has no role, so an error that asks for a sign-in would mislead.
        guard lanes.withLock({ $0[name] != nil }) else { throw .noRole(name) }
        do throws(BrokerError) {
            try await sessions.ready(name)
            guard try await sessions.readable(name) == nil else { return }
            throw await sessions.absence(of: name)
        } catch {
            throw .broker(error)
        }
    }

    /// What is held, or the outcome of the exchange that runs or is started here; nil when the wait is over.
    ///
    /// - Returns: also what is held meanwhile.
    private func take(_ name: AccountName) async throws(ExchangeFailure) -> (Outcome?, Held?) {
        let now = clock.bootInstant
        let promise = Promise<Outcome>()
        let found = lanes.withLock { lanes -> (held: Held?, running: Promise<Outcome>?, role: AssumedRole)? in
            guard let lane = lanes[name] else { return nil }
            if let held = lane.held, held.expiry.remaining(at: now) > held.margin { return (held, nil, lane.role) }
            guard lane.running == nil else { return (lane.held, lane.running, lane.role) }
            lanes[name]?.running = promise
            return (lane.held, promise, lane.role)
        }
        guard let found else { throw .noRole(name) }
        guard let running = found.running else {
            return (found.held.map { .exchanged(.success($0.issued(by: clock))) }, found.held)
        }
        if running === promise {
            // A caller that goes away does not end it: others may wait for it.
            broker.signInContext.tools.work.start {
                self.finish(await self.exchange(found.role), of: found.role, promise)
            }
        }
        return (await running.wait(atMost: RoleKeeper.patience), found.held)
    }

    private func finish(
        _ result: Result<RoleCredentials, ExchangeFailure>, of role: AssumedRole, _ promise: Promise<Outcome>
    ) {
        let held = (try? result.get()).map { Held($0, by: clock) }
        lanes.withLock { lanes in
            guard let lane = lanes[role.account], lane.running === promise else { return }
            lanes[role.account]?.running = nil
            if let held { lanes[role.account]?.held = held }
        }
        // If it was overtaken, its promise has been fulfilled already.
        promise.fulfil(.exchanged(result))
    }
}
