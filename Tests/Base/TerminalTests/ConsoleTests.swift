import Glibc
import Testing

@testable import Terminal

@Suite struct `The console` {
    @Test(arguments: [
        ([:], true), (["NO_COLOR": ""], true), (["NO_COLOR": "1"], false), (["TERM": "dumb"], false),
        (["TERM": "xterm"], true),
    ])
    func `NO_COLOR and a dumb terminal have no colour`(environment: [String: String], expected: Bool) {
        #expect(Console.allowsColor { environment[$0] } == expected)
    }

    @Test(arguments: [
        ([:], false), (["LANG": "C"], false), (["LANG": "C.UTF-8"], true), (["LANG": "de_DE.utf8"], true),
        (["LANG": "C.UTF-8", "LC_ALL": "C"], false), (["LANG": "C", "LC_CTYPE": "en_GB.UTF-8", "LC_ALL": ""], true),
        (["LANG": "C.UTF-8", "TERM": "dumb"], false), (["LANG": "C.UTF-8", "TERM": "linux"], false),
        (["LANG": "C.UTF-8", "NO_COLOR": "1"], true),
    ])
    func `symbols need UTF-8 and a terminal that has them`(environment: [String: String], expected: Bool) {
        #expect(Console.allowsSymbols { environment[$0] } == expected)
    }

    @Test(arguments: [("xterm-256color", true), ("linux", true), ("dumb", false), ("", false), (nil, false)])
    func `a line is erased where the terminal can`(term: String?, expected: Bool) {
        #expect(Console.movesCursor { $0 == "TERM" ? term : nil } == expected)
    }

    @Test func `a stream that takes no more is told`() {
        let full = unsafe open("/dev/full", O_WRONLY)
        defer { close(full) }
        #expect(!Console.write(Array("x".utf8), to: full))
        #expect(!Console.write(Array("x".utf8), to: -1))
    }
}
