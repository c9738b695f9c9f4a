import RingbackBase
import SessionVault

@testable import SharedVault

/// What must hold after each step, and in the end.
extension Simulation {
    /// Where a token is: in the row, in a candidate, or in a host's local vault.
    func holds(_ token: Token) async -> Bool {
        if rowHolds(token) { return true }
        for host in hosts {
            if case .received(token) = host.phase { return true }
            guard let text = await host.memory.load(Hosts.slot)?.text, let entry = SpoolEntry.read(text) else {
                continue
            }
            if entry.content.text.flatMap({ Token(of: $0.revealed()) }) == token { return true }
        }
        return false
    }

    func rowHolds(_ token: Token) -> Bool {
        let sealing = RowSealing(dataKey: Hosts.dataKey, owner: "alice")
        for row in database.rows {
            var sealed = [(row.sealed, row.version)]
            sealed += row.candidates.map { ($0.sealed, $0.parentVersion + 1) }
            for (bytes, version) in sealed {
                let content = try? sealing.open(bytes, as: row.key, version: version)
                if content?.text.flatMap({ Token(of: $0.revealed()) }) == token { return true }
            }
        }
        return false
    }

    func check() async {
        violations += provider.unexplained
        // The token that the provider accepts is somewhere, unless its response was lost.
        if let token = provider.current, !provider.isEnded, !provider.lost.contains(token), await !holds(token) {
            violations.append("nobody has \(token.value)")
        }
    }

    /// All faults are over: every host has the same session in the end, which works.
    func converge() async {
        faults = .none
        for host in hosts {
            host.stoppedUntil = .zero
            host.wire.set(.none)
            if host.vault == nil { try? await start(host) }
        }
        for _ in 0..<400 where violations.isEmpty {
            clock.advance(by: .seconds(20))
            for host in hosts {
                await step(host)
                while host.isBusy { await step(host) }
            }
            await check()
        }
        for host in hosts {
            await host.vault?.look(at: [nil])
            await host.reload()
        }
        let sessions = Set(hosts.map { $0.session ?? "nothing" })
        if sessions.count != 1, violations.isEmpty { violations.append("the hosts have \(sessions)") }
        if !provider.isEnded, violations.isEmpty, let session = sessions.first {
            if Token(of: session) != provider.current {
                violations.append("the hosts have \(session), which is not current")
            }
        }
    }
}
