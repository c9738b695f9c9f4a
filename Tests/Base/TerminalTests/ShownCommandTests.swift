import Glibc
import RingbackBase
import Terminal
import Testing

private struct NoShell: Error {}

/// The arguments that a POSIX shell gives to the program of a command.
private func arguments(of command: ShownCommand, named program: String = "ringback") throws -> [String] {
    let script = "\(program)() { printf '%s\\036' \"$@\"; }\n\(command)\n"
    guard let pipe = unsafe popen(script, "r") else { throw NoShell() }
    defer { unsafe pclose(pipe) }
    var bytes: [UInt8] = []
    while case let byte = unsafe fgetc(pipe), byte >= 0 { bytes.append(UInt8(truncatingIfNeeded: byte)) }
    return String(decoding: bytes, as: UTF8.self).split(separator: "\u{1E}", omittingEmptySubsequences: false)
        .dropLast().map(String.init)
}

@Suite struct `A command that is shown` {
    private static let values = [
        "plain", "a b", "", "$(id)", "`id`", "a;b", "a&b|c>d<e", "it's", "'", "\"", "\\", "a\\'b", "$HOME", "~", "~/a",
        "*",
        "?", "[a]", "{a,b}", "!x", "#x", "a=b", "a:b/c._~+-", "https://h/p?q=$(id)&r#f", "ä€", "-", "--", "-rf",
        "--again",
        "--scopes=x", "%s", "^a^b",
    ]

    @Test(arguments: values) func `gives a shell each value as it is`(value: String) throws {
        #expect(try arguments(of: "ringback login --scopes=\(value) x") == ["login", "--scopes=\(value)", "x"])
        #expect(try arguments(of: "ringback a\(value)b") == ["a\(value)b"])
        let dashes = value.hasPrefix("-") ? ["--"] : []
        #expect(try arguments(of: "ringback verb \(value)") == ["verb"] + dashes + [value])
        #expect(try arguments(of: "ringback verb \(value) NAME") == ["verb"] + dashes + [value, "NAME"])
        #expect(try arguments(of: ShownCommand(words: ["ringback", value])) == [value])
    }

    @Test func `puts a value with a dash behind the options, which it could be taken for`() throws {
        let command = ShownCommand("ringback verb \("-x") NAME --again --to=\("-y")")
        #expect(command.description == "ringback verb --again --to='-y' -- '-x' NAME")
        let inner = ShownCommand("ringback verb \("a") \("-x") \(ShownCommand(words: ["--flag", "a b"]))")
        #expect(inner.description == "ringback verb a --flag -- '-x' 'a b'")
    }

    @Test(arguments: [
        "a\nid", "a\r\nid", "a\u{1B}[2Jb", "a\u{202E}b", "a\u{2028}b", "a\u{0}b", "a\u{200B}b", "a\u{9B}b",
    ])
    func `has no character that a terminal or a reader takes for something else`(value: String) {
        let text = ShownCommand("ringback login \(value) --scopes=\(value)").description
        #expect(text.unicodeScalars.allSatisfy { $0.isVisible } && text.contains("?"))
    }

    @Test func `is one word for each value in a sentence and in another command`() {
        let options: ShownCommand = "--to=\("a b")"
        let none: ShownCommand = ""
        #expect("Run: \(shown: "ringback a \(options) \(none) \(1)"), then" == "Run: ringback a --to='a b' 1, then")
    }
}
