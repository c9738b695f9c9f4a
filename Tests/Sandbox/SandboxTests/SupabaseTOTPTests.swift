import Testing

@testable import Sandbox

@Suite struct `One-time codes of the Supabase project` {
    @Test(
        arguments: [
            (59, "94287082"), (1_111_111_109, "07081804"), (1_111_111_111, "14050471"), (1_234_567_890, "89005924"),
            (2_000_000_000, "69279037"), (20_000_000_000, "65353130"),
        ]) func `are those of RFC 6238`(time: Int, code: String)
    {
        #expect(SupabaseTOTP.code(Array("12345678901234567890".utf8), counter: time / 30, digits: 8) == code)
    }

    @Test func `are patient for one step either way`() {
        let secret = Array("a secret of twenty b".utf8)
        let now = 1_800_000_000
        for (steps, isAccepted) in [(-2, false), (-1, true), (0, true), (1, true), (2, false)] {
            let code = SupabaseTOTP.code(secret, counter: now / 30 + steps)
            #expect(SupabaseTOTP.accepts(code, secret: secret, at: now) == isAccepted, "\(steps)")
        }
        #expect(!SupabaseTOTP.accepts("", secret: secret, at: now))
    }

    @Test func `have secrets in base 32 as RFC 4648 has it`() {
        let cases = [
            ("", ""), ("f", "MY"), ("fo", "MZXQ"), ("foo", "MZXW6"), ("foob", "MZXW6YQ"), ("foobar", "MZXW6YTBOI"),
        ]
        for (text, encoded) in cases { #expect(SupabaseTOTP.base32(Array(text.utf8)) == encoded) }
    }
}
