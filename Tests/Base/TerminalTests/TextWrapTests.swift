import Testing

@testable import Terminal

@Suite struct `A line that is wider than the terminal` {
    @Test func `is broken between words`() {
        let text = "one two three four five six"
        #expect(TextWrap.wrapped(text, columns: 20) == "one two three four\nfive six")
        #expect(TextWrap.wrapped(text, columns: 27) == text)
        #expect(TextWrap.wrapped("a\n\n\(text)\n", columns: 20) == "a\n\none two three four\nfive six\n")
        #expect(
            TextWrap.wrapped("Vault      sealed-file, key: keyring", columns: 24, indent: 11)
                == "Vault      sealed-file,\n           key: keyring")
    }

    @Test func `stays as it is where the output is no terminal, or the line is no sentence`() {
        let text = "one two three four five six"
        #expect(TextWrap.wrapped(text, columns: nil) == text && TextWrap.wrapped(text, columns: 19) == text)
        for text in ["  ssh -L 8080:127.0.0.1:8080 host", "\u{1B}[1mone two three four five\u{1B}[0m"] {
            #expect(TextWrap.wrapped(text, columns: 20) == text)
        }
        let long = String(repeating: "a", count: 30)
        #expect(TextWrap.wrapped(long, columns: 20) == long)
        #expect(TextWrap.wrapped("Open \(long) now", columns: 20) == "Open\n\(long)\nnow")
    }

    @Test func `keeps a command whole`() {
        #expect(
            TextWrap.wrapped("It is locked. Run: ringback unlock (or wait for it)", columns: 30)
                == "It is locked. Run:\nringback unlock (or wait for\nit)")
        #expect(
            TextWrap.wrapped("To add it: ringback account add work --issuer URL", columns: 24)
                == "To add it:\nringback account add work --issuer URL")
    }

    @Test func `of usage is broken between options`() {
        let overview = "OVERVIEW: What is wider than this terminal stays\n\n"
        let text = overview + "USAGE: ringback exec [--scope <scope>] [--kind <kind>]\n"
        let broken = overview + "USAGE: ringback exec\n       [--scope <scope>]\n       [--kind <kind>]\n"
        #expect(TextWrap.wrappedUsage(text, columns: 30) == broken)
        #expect(TextWrap.wrappedUsage(text, columns: nil) == text)
        #expect(
            TextWrap.wrapped("Usage: ringback exec [--kind <kind>] -- <command>", columns: 38)
                == "Usage: ringback exec [--kind <kind>]\n       -- <command>")
    }
}
