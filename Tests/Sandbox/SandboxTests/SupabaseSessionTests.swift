import Cryptography
import RingbackBase
import Testing

@testable import Sandbox

@Suite struct `A counted refresh token` {
    let session = SupabaseText.uuid()
    let key = RandomToken.bytes(32)

    @Test(arguments: [0, 1, 127, 128, 300, 1 << 20]) func `is read as it was written`(counter: Int) throws {
        let text = SupabaseCountedToken(session: session, counter: counter).text(key: key)
        #expect(text.utf8.count >= 51)
        let token = try #require(SupabaseCountedToken(parsing: text))
        #expect(token.session == session)
        #expect(token.counter == counter)
        #expect(token.text(key: key) == text)
        #expect(token.text(key: RandomToken.bytes(32)) != text)
    }

    @Test func `is not one with a changed letter, nor a short one`() {
        let text = SupabaseCountedToken(session: session, counter: 5).text(key: key)
        for index in text.indices {
            var changed = text
            changed.replaceSubrange(index...index, with: text[index] == "A" ? "B" : "A")
            // The last letter has bits that mean nothing.
            if index == text.indices.last { continue }
            #expect(SupabaseCountedToken(parsing: changed) == nil, "\(changed)")
        }
        #expect(SupabaseCountedToken(parsing: "abcdefghijkl") == nil)
        #expect(SupabaseCountedToken(parsing: String(text.dropLast(4))) == nil)
    }
}

@Suite struct `Times and names as the real server writes them` {
    @Test(
        arguments: [
            (0, 0, "1970-01-01T00:00:00Z"), (1_800_000_000, 120_000_000, "2027-01-15T08:00:00.12Z"),
            (951_782_400, 18_294_975, "2000-02-29T00:00:00.018294975Z"),
            (4_107_542_399, 1, "2100-02-28T23:59:59.000000001Z"),
        ]) func `a time has no zeros at its end`(seconds: Int, nanoseconds: Int, text: String)
    {
        #expect(SupabaseInstant(seconds: seconds, nanoseconds: nanoseconds).text == text)
    }

    @Test func `a number is kept without its plus`() {
        #expect(SupabaseText.phone("+49 30 123456") == "4930123456")
        for text in ["", "+", "0301", "+49-30", "+(49)30", "+1234567890123456", "12a"] {
            #expect(SupabaseText.phone(text) == nil, "\(text)")
        }
    }

    @Test func `an address is lower-cased`() {
        #expect(SupabaseText.email("Mira@Example.org") == "mira@example.org")
        for text in ["", "mira", "@example.org", "mira@", "a@b@c", "a b@c.d", "a@.b", "ä@example.org"] {
            #expect(SupabaseText.email(text) == nil, "\(text)")
        }
    }

    @Test(arguments: [
        ("2024-01-01", true), ("2025-12-31", true), ("2023-12-31", false), ("2024-1-1", false), ("", false),
        ("2024-13-01", false),
    ])
    func `a version is a date`(text: String, isCurrent: Bool) {
        #expect(SupabaseResponses.isCurrent(text) == isCurrent)
    }
}
