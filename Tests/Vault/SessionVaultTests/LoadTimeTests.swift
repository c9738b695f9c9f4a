import RingbackBase
import Testing

@testable import SessionVault

@Suite(.serialized) struct `A thousand sessions` {
    /// Optimized code takes well under 150 ms. The bound here is for unoptimized code on a busy machine. The time is
    /// printed.
    @Test func `are read in a moment`() async throws {
        let house = VaultHouse()
        let slots = (0..<1_000).map { VaultSlot(account: "account-\($0)", binding: slot.binding) }
        let text = Secret(String(repeating: "four kilobytes of tokens ", count: 160))
        let first = try await house.opened()
        for slot in slots { try await first.store(text, in: slot) }
        let clock = ContinuousClock()
        let start = clock.now
        let vault = try await house.opened()
        let opened = clock.now
        for slot in slots { #expect(try await vault.load(slot)?.text.count == text.count) }
        let end = clock.now
        print("1,000 sealed sessions: opened in \(opened - start), read in \(end - opened)")
        #expect(end - start < .seconds(5))
    }
}
