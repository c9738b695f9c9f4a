import RingbackBase
import SessionVault
import Synchronization
import TestSupport

@testable import SharedVault

/// Hosts that share a session of a provider that replaces the refresh token with each refresh and ends the session when
/// an older one is presented. One step after another, with the seed's faults: the same in every run of one seed.
final class Simulation {
    struct Faults {
        var database = 0.0
        /// How many statements in a row fail at most.
        var outage = 40
        var provider = 0.0
        var kills = 0.0
        var stops = 0.0
        var failovers = 0.0
        /// Of an idle host that does something: how often it edits the session. This is no fault.
        var edits = 0.05

        static let none = Faults()
        static let all = Faults(database: 0.1, provider: 0.05, kills: 0.03, stops: 0.02, failovers: 0.01)
    }

    let seed: UInt64
    var random: SeededGenerator
    var faults: Faults
    let clock = Hosts.TimeBox()
    let database: MemoryRows
    let provider = RotatingProvider()
    var hosts: [SimulatedHost] = []
    var violations: [String] = []
    var trace: [String] = []

    init(seed: UInt64, faults: Faults) async throws {
        self.seed = seed
        self.faults = faults
        random = SeededGenerator(seed: seed)
        database = MemoryRows { [clock] in clock.now }
        let count =
            faults.failovers + faults.kills == 0 && seed.isMultiple(of: 5) ? 20 : Int.random(in: 3...8, using: &random)
        for number in 0..<count { hosts.append(SimulatedHost("host\(number)")) }
        for host in hosts { try await start(host) }
        guard let first = hosts.first else { return }
        let text = provider.signIn().text(expiring: clock.now + RotatingProvider.lifetime)
        try await first.vault?.store(text, in: Hosts.slot, as: .replacement)
        first.session = text.revealed()
        for host in hosts { await host.reload() }
    }

    func chance(_ share: Double) -> Bool { share > 0 && Double.random(in: 0..<1, using: &random) < share }

    func note(_ text: String) {
        trace.append("\(clock.now.components.seconds) \(text)")
        if trace.count > 60 { trace.removeFirst() }
    }

    func run(steps: Int) async {
        for _ in 0..<steps where violations.isEmpty {
            clock.advance(by: .milliseconds(Int.random(in: 0...3_000, using: &random)))
            database.replicateAtRandom(chance(0.5))
            if chance(faults.failovers) {
                note("failover")
                provider.isFailedOver = true
                database.failOver()
            }
            await step(next())
            await check()
        }
    }

    /// A host that is at something is not left waiting: only the faults stop it.
    private func next() -> SimulatedHost {
        let busy = hosts.filter { $0.isBusy && $0.stoppedUntil <= clock.now }
        let some = busy.isEmpty || chance(0.1) ? hosts : busy
        return some[Int.random(in: 0..<some.count, using: &random)]
    }

    func step(_ host: SimulatedHost) async {
        guard host.stoppedUntil <= clock.now else { return }
        guard host.vault != nil else {
            if chance(0.3) { try? await start(host) }
            return
        }
        if chance(faults.stops) {
            host.stoppedUntil = clock.now + .seconds(Int.random(in: 10...200, using: &random))
            host.wasStopped = true
            note("\(host.name) is stopped")
            return
        }
        if chance(faults.kills) { host.life.killAfter = Int.random(in: 0...4, using: &random) }
        if chance(faults.database) {
            host.wire.set(
                chance(0.5) ? .answerLost : .notReached,
                count: chance(0.5) ? 1 : Int.random(in: 1...faults.outage, using: &random)
            )
        }
        await turn(host)
        if host.life.isDead {
            note("\(host.name) is killed")
            if case .received(let token) = host.phase { provider.lose(token) }
            host.vault = nil
            host.phase = .idle
        }
    }

    func start(_ host: SimulatedHost) async throws {
        host.life = Life()
        let (life, wire, local) = (host.life, host.wire, Spool(host.memory, host.life))
        let connection = MemoryRows.Connection(database, host: host.name) { name in
            life.passes() ? wire.fault(name) : .notReached
        }
        let generator = Mutex(SeededGenerator(seed: UInt64.random(in: 0...UInt64.max, using: &random)))
        let vault = SharedVault(
            local: local, rows: connection, hosts: MemoryHosts.Connection(MemoryHosts(), role: host.name),
            place: DatabasePlace(shown: "database", role: host.name, database: "vault"), now: { [clock] in clock.now },
            random: { count in
                generator.withLock { generator in (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
                }
            })
        try await vault.adopt(Membership(dataKey: Hosts.dataKey, owner: "alice", host: host.name))
        host.vault = vault
        host.phase = .idle
        host.retryAt = .zero
        await host.reload()
        if clock.now > .seconds(1_000) { note("\(host.name) is started with \(host.session ?? "nothing")") }
    }

    private func turn(_ host: SimulatedHost) async {
        guard let vault = host.vault else { return }
        switch host.phase {
        case .idle:
            if chance(0.5) {
                await vault.look(at: [nil])
                _ = await vault.maintain()
                await host.reload()
            } else if chance(faults.edits) {
                await edit(host, vault)
            } else {
                await refresh(host, vault)
            }
        case .announced(let tokens): await present(tokens, host, vault)
        case .sending(let tokens):
            if let token = tokens.first { await send(token, tokens, host, vault) }
        case .received(let token):
            let text = token.text(expiring: clock.now + RotatingProvider.lifetime)
            let isStored = await host.attempt { () throws(VaultError) in
                try await vault.store(text, in: Hosts.slot, as: .received)
                try await vault.store(text, in: Hosts.slot, as: .result)
            }
            guard !host.life.isDead else {
                // Killed while it stored: either the local vault or the database has it, or nobody.
                host.phase = .idle
                if await !holds(token) { provider.lose(token) }
                return
            }
            note("\(host.name) stored \(token.value) \(isStored ? "" : "in part")")
            host.session = text.revealed()
            host.phase = .tending
        case .tending:
            // Until the database has the response, the host tries again.
            if await vault.maintain() == nil { host.phase = .idle }
        }
    }

    /// Writes something that belongs to the session and is no token.
    private func edit(_ host: SimulatedHost, _ vault: SharedVault) async {
        guard let session = host.session, let token = Token(of: session) else { return }
        let text = token.text(expiring: Token.expiry(of: session), note: " \(clock.now.components.seconds)")
        if await host.attempt({ () throws(VaultError) in try await vault.store(text, in: Hosts.slot, as: .edit) }) {
            note("\(host.name) edits \(token.value)")
            host.session = text.revealed()
        } else if !host.life.isDead {
            await host.reload()
        }
    }

    private func refresh(_ host: SimulatedHost, _ vault: SharedVault) async {
        guard let session = host.session, let token = Token(of: session), host.retryAt <= clock.now else { return }
        let left = Token.expiry(of: session) - clock.now
        guard left < RotatingProvider.margin else { return }
        do throws(VaultError) {
            switch try await vault.announce(
                Hosts.slot, presenting: Secret(token.value), accessTokenLeft: max(left, .zero))
            {
            case .granted(_, let newer, let older):
                let tokens = ([newer, [Secret(session)], older] as [[Secret]]).joined().compactMap {
                    Token(of: $0.revealed())
                }
                host.phase = .announced(tokens)
                host.wasStopped = false
                provider.isFailedOver = false
                note("\(host.name) may present \(tokens.map(\.value))")
            case .changed(let entry):
                note("\(host.name) finds \(entry?.text.revealed() ?? "nothing")")
                await host.reload()
            case .wait(let wait): host.retryAt = clock.now + min(wait, .seconds(60))
            }
        } catch {
            host.retryAt = clock.now + .seconds(2)
        }
    }

    private func present(_ tokens: [Token], _ host: SimulatedHost, _ vault: SharedVault) async {
        guard let token = tokens.first else {
            if await vault.proofOfEnd(Hosts.slot) != nil {
                note("\(host.name) says that the session has ended")
                _ = await host.attempt { () throws(VaultError) in
                    try await vault.store(Secret("ended"), in: Hosts.slot, as: .end)
                }
            } else {
                try? await vault.settle(Hosts.slot)
                host.retryAt = clock.now + .seconds(300)
            }
            host.phase = .idle
            return await host.reload()
        }
        do throws(VaultError) {
            guard try await vault.requestBound(Hosts.slot) != nil else { return violations.append("no bound") }
        } catch {
            note("\(host.name) may not send any more")
            host.phase = .idle
            host.retryAt = clock.now + .seconds(2)
            return
        }
        // It may be stopped right before it sends.
        if chance(faults.stops * 3) {
            note("\(host.name) is stopped before it sends")
            host.stoppedUntil = clock.now + .seconds(Int.random(in: 10...700, using: &random))
            host.wasStopped = true
            host.phase = .sending(tokens)
            return
        }
        await send(token, tokens, host, vault)
    }

    private func send(_ token: Token, _ tokens: [Token], _ host: SimulatedHost, _ vault: SharedVault) async {
        let lease = database.rows.first?.lease
        if !host.wasStopped, !provider.isFailedOver, lease?.host != host.name {
            violations.append("\(host.name) presents \(token.value) without a lease: \(String(describing: lease))")
        }
        if chance(faults.provider) {
            note("\(host.name) reaches no provider")
            host.phase = .idle
            host.retryAt = clock.now + .seconds(5)
            return
        }
        // The end of the session is explained if the database does not have what came for the token: the response was
        // lost, or the host that has it was stopped, cannot reach the database, or the database has lost it.
        let successor = provider.successors[token]
        let isKnown = if let successor { rowHolds(successor) } else { false }
        let isLate = host.wasStopped || provider.wasFailedOver
        let response = provider.refresh(token, isExplained: isLate || !isKnown)
        if chance(faults.provider) {
            note("\(host.name) presents \(token.value) and loses the response")
            if let response { provider.lose(response) }
            host.phase = .idle
            host.retryAt = clock.now + .seconds(5)
            return
        }
        note("\(host.name) presents \(token.value) and gets \(response?.value ?? "an error")")
        if let response { host.phase = .received(response) } else { host.phase = .announced(Array(tokens.dropFirst())) }
    }
}
