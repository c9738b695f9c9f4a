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

    @Test(arguments: [
        "plain", "a b", "a, b; c. d) (e", "it's a", "'", "' '", "a'  b", "$(touch /tmp/x) y", "-x y", "a\\ b", "a.",
        "a:",
        "a, ", "\"a b\"", "(a b)", "",
    ]) func `leaves a command that is shown on one line, whatever is in it`(value: String) {
        let commands: [ShownCommand] = [
            "ringback login \(value) --scopes=\(value)", "ringback a \(value) b",
            ShownCommand(words: ["curl", value, "x"]),
            "flatpak override --user --env=A=\(value) app", "kill \(ShownCommand(words: ["1", value]))",
        ]
        for command in commands {
            for text in [
                "Run: \(shown: command)", "To do what is wanted: \(shown: command).",
                "It is locked. Run: \(shown: command) (or wait for it to be unlocked)",
                "Then: \(shown: command), and wait for what it says", "\(shown: command)",
            ] {
                for columns in 20..<70 {
                    let lines = TextWrap.wrapped(text, columns: columns).split(separator: "\n")
                    #expect(lines.contains { $0.contains(command.description) }, "\(columns): \(lines)")
                }
            }
        }
        let two: (ShownCommand, ShownCommand) = ("ringback unlock \(value)", "ringback vault rekey --to=\(value)")
        for columns in 20..<70 {
            let text = "To move it, run \(shown: two.0) and then \(shown: two.1), and set it back."
            let lines = TextWrap.wrapped(text, columns: columns).split(separator: "\n")
            for command in [two.0, two.1] {
                #expect(lines.contains { $0.contains(command.description) }, "\(columns): \(lines)")
            }
        }
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
