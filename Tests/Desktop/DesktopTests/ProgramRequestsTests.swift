import FoundationEssentials
import Glibc
import RingbackBase
import Testing

@testable import Desktop

@Suite(.timeLimit(.minutes(2))) struct `Programs through the helper` {
    private final class Place {
        let path = "/tmp/ringback-programs-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        let line: LifeLine

        init() throws {
            line = try LifeLine()
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        func program(_ name: String) throws -> String {
            let script = """
                #!/bin/sh
                { printf '%s\\n' "$#" "$@"; env; umask; pwd; readlink /proc/$$/fd/2
                grep ^PPid /proc/$$/status; ls /proc/self/fd | tr '\\n' ' '; } >'\(path)/out.part'
                mv '\(path)/out.part' '\(path)/out'
                echo >'\(line.path)'
                """
            let file = "\(path)/\(name)"
            try Data(script.utf8).write(to: URL(filePath: file))
            unsafe chmod(file, 0o755)
            return file
        }

        func lines() async throws -> [String] {
            #expect(await line.hasBegun())
            let text = String(decoding: try Data(contentsOf: URL(filePath: path + "/out")), as: UTF8.self)
            return text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        }
    }

    private static let link = "swisscoin://pay?a=$(id)&b=`id`;c=\"x\"'y'#$HOME%68\\"

    @Test func `start with the link as one word, whatever is in it`() async throws {
        let place = try Place()
        let helper = try InnerHelper(
            environment: ["PATH=/usr/bin:/bin", "HOME=\(place.path)", "DISPLAY=:7"],
            places: .init(session: "unix:path=/nonexistent/bus"),
            applications: ["swisscoin": [try place.program("app"), "--link={url}", "last"]])
        try await helper.connection.startApplication(scheme: "swisscoin", url: Secret(Self.link))
        let lines = try await place.lines()
        #expect(Array(lines[..<3]) == ["2", "--link=\(Self.link)", "last"])
        #expect(lines.contains("DISPLAY=:7") && lines.contains("0022") && lines.contains(place.path))
        #expect(lines.contains("/dev/null"))
        // Nobody's child, and with nothing open that is not its own.
        #expect(!lines.contains("PPid:\t\(getpid())"))
        #expect(lines.contains { $0.hasPrefix("0 1 2 3 ") && $0.split(separator: " ").count == 4 }, "\(lines)")
    }

    @Test func `are held back in nothing that the helper holds itself back in`() async throws {
        let line = try LifeLine()
        // No shell between: it would set its signals right by itself.
        let helper = try InnerHelper(
            places: .init(session: "unix:path=/nonexistent/bus"),
            applications: ["x": ["/bin/dd", "if=/proc/self/status", "of=\(line.path)", "bs=65536", "status=none"]])
        try await helper.connection.startApplication(scheme: "x", url: Secret("x:"))
        #expect(await line.hasBegun())
        let status = line.text().split(separator: "\n").map(String.init)
        for name in ["SigIgn", "SigBlk"] {
            let mask = status.first { $0.hasPrefix("\(name):\t") }.flatMap { UInt64($0.dropFirst(8), radix: 16) }
            // 32 and 33 are the C library's own, which nobody else can set.
            #expect(mask.map { $0 & ~0x1_8000_0000 } == 0, "\(status.filter { $0.hasPrefix("Sig") })")
        }
    }

    @Test func `are the configuration's, and take links of their scheme alone`() async throws {
        let place = try Place()
        let helper = try InnerHelper(
            places: .init(session: "unix:path=/nonexistent/bus"),
            applications: ["swisscoin": [try place.program("app"), "{url}"], "gone": ["/nonexistent/app", "{url}"]])
        func failure(_ scheme: String, _ url: String) async -> String? {
            do throws(HelperError) {
                try await helper.connection.startApplication(scheme: scheme, url: Secret(url))
                return nil
            } catch {
                return "\(error)"
            }
        }
        #expect(await failure("mail", "mail:x") == "the program is not in the configuration of scheme 'mail'")
        let other = "the program was not started: the URL is not valid for this scheme"
        for url in [
            "https://example.org", "swisscoin", "-swisscoin:x", "swisscoin:a b", "swisscoin:a\nb", "swisscoinx:a",
        ] {
            #expect(await failure("swisscoin", url) == other, "\(url)")
        }
        let long = "swisscoin:" + String(repeating: "a", count: 16_400)
        #expect(
            await failure("swisscoin", long)
                == "the program was not started: the URL is longer than 16384 bytes")
        #expect(
            await failure("gone", "gone:x") == "the program was not started: there is no program /nonexistent/app")
        // And the longest link arrives.
        #expect(await failure("swisscoin", "SwissCoin:" + String(repeating: "a", count: 16_374)) == nil)
        #expect(try await place.lines()[1].utf8.count == 16_384)
    }

    @Test func `open pages of the web alone`() async throws {
        let place = try Place()
        _ = try place.program("xdg-open")
        let helper = try InnerHelper(
            environment: ["PATH=\(place.path):/usr/bin:/bin"], places: .init(session: "unix:path=/nonexistent/bus"))
        for url in ["file:///etc/passwd", "javascript:alert(1)", "swisscoin://x", "--help", "https:", ""] {
            let reason = "was not started: the URL is not valid for this scheme"
            await #expect(throws: HelperError.programFailed(reason: reason)) {
                try await helper.connection.openPage(url: url)
            }
        }
        try await helper.connection.openPage(
            url: "https://id.example.org/authorize?a=1&b=$HOME", activationToken: "from-the-compositor")
        let lines = try await place.lines()
        #expect(Array(lines[..<2]) == ["1", "https://id.example.org/authorize?a=1&b=$HOME"])
        #expect(lines.contains("XDG_ACTIVATION_TOKEN=from-the-compositor"))
    }

    @Test func `open a page in the account's browser, and in the desktop's where it has none`() async throws {
        let page = "http://127.0.0.1:4711/start/x"
        for (account, words) in [("work", ["-P", "work", page]), ("mail", ["--new=\(page)", "--x"]), ("a", [page])] {
            let place = try Place()
            let helper = try InnerHelper(
                environment: ["PATH=\(place.path):/usr/bin:/bin"],
                places: .init(session: "unix:path=/nonexistent/bus"),
                browsers: ["work": ["fox", "-P", "work"], "mail": [try place.program("fox"), "--new={url}", "--x"]])
            _ = try place.program("xdg-open")
            try await helper.connection.openPage(url: page, of: account)
            #expect(Array(try await place.lines()[1...words.count]) == words)
            await #expect(throws: HelperError.self) {
                try await helper.connection.openPage(url: "file:///etc/passwd", of: account)
            }
        }
        let helper = try InnerHelper(
            places: .init(session: "unix:path=/nonexistent/bus"), browsers: ["work": ["/nonexistent/fox"]])
        let reason = "was not started: there is no program /nonexistent/fox"
        await #expect(throws: HelperError.programFailed(reason: reason)) {
            try await helper.connection.openPage(url: page, of: "work")
        }
    }

    @Test func `are the service manager's to start where there is one`() async throws {
        let bus = try PrivateBus()
        let fake = try bus.fake("systemd1")
        let helper = try InnerHelper(
            places: .init(session: bus.address), applications: ["swisscoin": ["/bin/true", "{url}"]])
        try await helper.connection.startApplication(scheme: "swisscoin", url: Secret("swisscoin:x"))
        #expect(try fake.waitFor("unit ").contains("\"swisscoin:x\""))
    }

    @Test func `are not started twice where the service manager fails`() async throws {
        let bus = try PrivateBus()
        let fake = try bus.fake("systemd1", "failing")
        let place = try Place()
        let helper = try InnerHelper(
            places: .init(session: bus.address), applications: ["swisscoin": [try place.program("app"), "{url}"]])
        let reason = "was not started: the service manager could not start it; the user's journal has the reason"
        await #expect(throws: HelperError.programFailed(reason: reason)) {
            try await helper.connection.startApplication(scheme: "swisscoin", url: Secret("swisscoin:x"))
        }
        try fake.waitFor("unit ")
        #expect(!FileManager.default.fileExists(atPath: place.path + "/out"))
    }
}
