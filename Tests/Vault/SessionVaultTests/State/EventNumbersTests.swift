import Testing

@testable import SessionVault

@Suite struct `Where the numbers of events begin` {
    @Test func `is after every earlier beginning, whatever the clock does`() {
        let house = VaultHouse()
        let clocks: [UInt64] = [1_700_000_000_000_000, 1_700_000_001_000_000, 5, 6, 1_700_000_002_000_000]
        var last: UInt64 = 0
        for clock in clocks {
            let first = EventNumbers.next(in: house.state, now: clock)
            #expect(first > last && first >= clock)
            last = first
        }
    }

    @Test func `a number of up to 2^52 is followed by one that a double holds exactly`() {
        let last = "4503599627370496"
        let first = firstNumber(after: last)
        #expect(first == (1 << 52) + EventNumbers.room && first + EventNumbers.room < 1 << 53)
    }

    @Test(arguments: ["", "x", "-5", "99999999999999999999999", "4503599627370497", "18446744073709551615"])
    func `does not follow from a file that says nothing sensible`(text: String) {
        #expect(firstNumber(after: text) == 1_000)
    }

    /// The first number of a daemon that starts at 1,000, where the file has this text.
    private func firstNumber(after text: String) -> UInt64 {
        let house = VaultHouse()
        house.write(Array(text.utf8), "\(house.state)/events")
        return EventNumbers.next(in: house.state, now: 1_000)
    }

    @Test func `is the clock's word where there is no place`() {
        #expect(EventNumbers.next(in: "/nonexistent", now: 7) == 7)
    }
}
