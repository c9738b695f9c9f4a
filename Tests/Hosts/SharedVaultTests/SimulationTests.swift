import Foundation
import Testing

/// How many seeds are run: a few, or as many as `RINGBACK_SEEDS` says.
private let seeds: ClosedRange<UInt64> =
    1...(ProcessInfo.processInfo.environment["RINGBACK_SEEDS"].flatMap(UInt64.init) ?? 25)

@Suite struct `Hosts that share a session, simulated` {
    private func expectNothing(_ simulation: Simulation) {
        let trace = simulation.trace.joined(separator: "\n")
        #expect(simulation.violations.isEmpty, "seed \(simulation.seed): \(simulation.violations)\n\(trace)")
    }

    @Test func `no token is lost, and each end is explained, whatever fails`() async throws {
        for seed in seeds {
            let simulation = try await Simulation(seed: seed, faults: .all)
            await simulation.run(steps: 600)
            await simulation.converge()
            expectNothing(simulation)
            guard simulation.violations.isEmpty else { return }
        }
    }

    @Test func `the session never ends while only single statements fail`() async throws {
        for seed in seeds {
            let faults = Simulation.Faults(database: 0.2, outage: 1)
            let simulation = try await Simulation(seed: seed, faults: faults)
            await simulation.run(steps: 600)
            await simulation.converge()
            expectNothing(simulation)
            #expect(!simulation.provider.isEnded, "seed \(seed)\n\(simulation.trace.joined(separator: "\n"))")
            guard simulation.violations.isEmpty, !simulation.provider.isEnded else { return }
        }
    }

    @Test func `without faults each expiry is one refresh`() async throws {
        for seed in seeds {
            let simulation = try await Simulation(seed: seed, faults: .none)
            await simulation.run(steps: 1_500)
            expectNothing(simulation)
            let elapsed = simulation.clock.now - .seconds(1_000)
            let shortest = RotatingProvider.lifetime - RotatingProvider.margin
            #expect(simulation.provider.refreshCount > 0)
            #expect(shortest * simulation.provider.refreshCount <= elapsed, "seed \(seed)")
            #expect(!simulation.provider.isEnded)
        }
    }
}
