import RingbackBase
import SessionVault
import Testing

@testable import BrokerTestSupport
@testable import SharedVault

private let slot = Hosts.slot

@Suite struct `Edits of a session that other hosts refresh` {
    private let hosts = Hosts()

    /// The first host was cut off from the provider in its request, and its lease is over.
    private func cutOff() async throws -> (SharedVault, SharedVault) {
        let (one, two) = try await hosts.pair()
        _ = try await one.take()
        _ = try await one.requestBound(slot)
        hosts.advance(by: .seconds(61))
        return (one, two)
    }

    @Test func `a request of another host before the edits is waited for as without them`() async throws {
        let (_, two) = try await cutOff()
        for number in 0..<3 { try await two.store("edited \(number)", as: .edit) }
        #expect(hosts.row?.version == 4)
        #expect(try await two.take() == .wait(.seconds(60)))
    }

    @Test func `what another host received before the edits is presented first`() async throws {
        let (one, two) = try await cutOff()
        for number in 0..<3 { try await two.store("edited \(number)", as: .edit) }
        try await one.store("second", as: .result)
        #expect(try await two.take() == .granted(.unleased, newer: [Secret("second")], older: []))
    }

    @Test func `what came before a refresh is presented last, and nobody waits for it`() async throws {
        let (one, two) = try await cutOff()
        try await two.store("edited", as: .edit)
        hosts.advance(by: .seconds(600))
        _ = try await two.take(left: .zero)
        try await two.store("third", as: .result)
        try await two.store("third, edited", as: .edit)
        try await one.store("second", as: .result)
        #expect(try await two.take() == .granted(.unleased, newer: [], older: [Secret("second")]))
    }
}

@Suite struct `Times in what another host wrote` {
    private let hosts = Hosts()

    @Test func `are counted from when that host was booted, by the database's clock`() async throws {
        let one = try await hosts.host("one", bootedAt: 5_000)
        let two = try await hosts.host("two", bootedAt: 2_000)
        try await one.store("first", as: .replacement)
        #expect(try await two.load(slot)?.shift == .seconds(3_000))
        #expect(try await one.load(slot)?.shift == .zero)
        _ = try await two.take()
        try await two.store("second", as: .result)
        guard case .changed(let entry) = try await one.take() else { throw Unexpected("not changed") }
        #expect(entry?.shift == .seconds(-3_000))
        try await one.store("edited", as: .edit)
        #expect(try await two.load(slot)?.shift == .seconds(3_000))
    }

    @Test func `are counted so after a boot of the same host`() async throws {
        let local = MemoryVault()
        let before = try await hosts.host("one", local: local, bootedAt: 2_000)
        try await before.store("first", as: .replacement)
        let after = try await hosts.host("one", local: local, bootedAt: 9_000)
        #expect(try await after.load(slot)?.shift == .seconds(-7_000))
    }

    @Test func `are by the wall's clock where one of the hosts has not read the database's`() async throws {
        let one = try await hosts.host("one")
        let two = try await hosts.host("two", bootedAt: 2_000)
        try await one.store("first", as: .replacement)
        #expect(try await two.load(slot).map { $0.shift == nil } == true)
        try await two.store("second", as: .replacement)
        #expect(try await one.load(slot).map { $0.shift == nil } == true)
    }
}
