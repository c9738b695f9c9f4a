import Glibc
import Testing

@testable import SessionVault

@Suite struct `Where the numbers of events begin` {
    @Test func `is after every earlier beginning, whatever the clock does`() throws {
        var template = Array("/tmp/event-numbers.XXXXXX".utf8CString)
        try #require(unsafe mkdtemp(&template) != nil)
        let directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer {
            unsafe unlink("\(directory)/events")
            unsafe rmdir(directory)
        }
        let clocks: [UInt64] = [1_700_000_000_000_000, 1_700_000_001_000_000, 5, 6, 1_700_000_002_000_000]
        var last: UInt64 = 0
        for clock in clocks {
            let first = EventNumbers.next(in: directory, now: clock)
            #expect(first > last && first >= clock)
            last = first
        }
    }

    @Test func `a number of up to 2^52 is followed by one that a double holds exactly`() throws {
        let last = "4503599627370496"
        let first = try firstNumber(after: last)
        #expect(first == (1 << 52) + EventNumbers.room && first + EventNumbers.room < 1 << 53)
    }

    @Test(arguments: ["", "x", "-5", "99999999999999999999999", "4503599627370497", "18446744073709551615"])
    func `does not follow from a file that says nothing sensible`(text: String) throws {
        #expect(try firstNumber(after: text) == 1_000)
    }

    /// The first number of a daemon that starts at 1,000, where the file has this text.
    private func firstNumber(after text: String) throws -> UInt64 {
        var template = Array("/tmp/event-numbers.XXXXXX".utf8CString)
        try #require(unsafe mkdtemp(&template) != nil)
        let directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer {
            unsafe unlink("\(directory)/events")
            unsafe rmdir(directory)
        }
        let descriptor = unsafe open("\(directory)/events", O_WRONLY | O_CREAT, 0o600)
        let bytes = Array(text.utf8)
        #expect(unsafe write(descriptor, bytes, bytes.count) == bytes.count)
        close(descriptor)
        return EventNumbers.next(in: directory, now: 1_000)
    }

    @Test func `is the clock's word where there is no place`() {
        #expect(EventNumbers.next(in: "/nonexistent", now: 7) == 7)
    }
}
