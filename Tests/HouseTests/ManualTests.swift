// The manual pages: their examples are run, their options exist, and `make install` brings them along.

import Glibc
import Testing

@Suite struct `The manual` {
    @Test func `every example works as it is printed, in order`() async throws {
        let examples = try ["ringback.1", "ringbackd.1"].flatMap { try Document(path: "man/\($0)").manualExamples }
        #expect(examples.count >= 8)
        try await Stage.playReader { stage in
            for example in examples { try await stage.type(example) }
        }
    }

    @Test func `no verb is left out`() async throws {
        let page = try Document(path: "man/ringback.1")
        try await Stage.play("", startsDaemon: false) { stage in
            for verb in try await stage.verbs() {
                let isThere = page.lines.contains { line in
                    line.split(separator: " ").prefix(2).last?.filter { $0 != "\"" } == Substring(verb)
                        && line.hasPrefix(".B")
                }
                #expect(isThere, "\(verb)")
            }
        }
    }

    @Test(arguments: ["ringback", "ringbackd"])
    func `its options are those of the programs`(program: String) async throws {
        let text = try Document(path: "man/\(program).1").text.replacing("\\-", with: "-")
        try await Stage.play("", startsDaemon: false) { stage in
            var help = try await stage.run(program, ["--help"]).out
            if program == "ringback" {
                for verb in try await stage.verbs() {
                    let own = try await stage.run("ringback", [verb, "--help"]).out
                    help += own
                    for below in Stage.verbs(in: own) {
                        help += try await stage.run("ringback", [verb, below, "--help"]).out
                    }
                }
            }
            // The options of the other programs in the examples and of `systemctl`.
            let foreign: Set = ["--unix-socket", "--user", "--now"]
            for option in Manual.options(in: text) where !foreign.contains(option) {
                let isKnown = help.contains(option)
                #expect(isKnown, "\(option)")
            }
            if program == "ringbackd" {
                for option in Manual.options(in: help) { #expect(text.contains(option), "\(option)") }
            }
        }
    }

    @Test(.enabled(if: Manual.hasGroff, "groff is not installed"), arguments: ["ringback", "ringbackd"])
    func `groff has no complaint`(program: String) async throws {
        let arguments = ["-man", "-ww", "-Tutf8", "\(Document.root)/man/\(program).1"]
        let ended = try await Program("/usr/bin/groff", arguments, environment: ["PATH": "/usr/bin:/bin"]).end()
        #expect(ended.status == 0 && ended.err.isEmpty && !ended.out.isEmpty, "\(ended.err)")
    }

    @Test func `make install brings everything, and make uninstall takes it away`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let destination = "\(stage.directory)/destination"
            let arguments = [
                "--no-print-directory", "-C", Document.root, "RELEASE=\(Programs.directory)", "DESTDIR=\(destination)",
                "PREFIX=/usr",
            ]
            let installed = try await stage.run("/usr/bin/make", ["install"] + arguments)
            #expect(installed.status == 0, "\(installed)")
            #expect(
                try await stage.run("/usr/bin/find", [destination, "-type", "f", "-printf", "/%P %m\n"]).lines.sorted()
                    == [
                        "/usr/bin/ringback 755", "/usr/bin/ringback-sandbox 755", "/usr/bin/ringbackd 755",
                        "/usr/lib/systemd/user/ringback.service 644", "/usr/lib/systemd/user/ringback.socket 644",
                        "/usr/share/man/man1/ringback.1 644", "/usr/share/man/man1/ringbackd.1 644",
                        "/usr/share/ringback/60-ringback.conf 644", "/usr/share/ringback/ringback-callback.desktop 644",
                    ])
            #expect(try await stage.run("/usr/bin/make", ["uninstall"] + arguments).status == 0)
            #expect(try await stage.run("/usr/bin/find", [destination, "-type", "f"]).out.isEmpty)
        }
    }
}

private enum Manual {
    static let hasGroff = unsafe access("/usr/bin/groff", X_OK) == 0

    /// Every `--option` in a text.
    static func options(in text: String) -> Set<String> {
        let words = text.split { !($0.isASCII && ($0.isLetter || $0 == "-" || $0 == "_")) }
        return Set(words.filter { $0.hasPrefix("--") && $0.count > 2 }.map(String.init))
    }
}
