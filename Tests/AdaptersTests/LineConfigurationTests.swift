import HTTPMessages
import Testing

@testable import Adapters

@Suite struct `A configuration of lines` {
    private func read(_ text: String, _ format: LineFormat) throws -> LineConfiguration {
        try #require(LineConfiguration(reading: Array(text.utf8), as: format))
    }

    private func text(_ configuration: LineConfiguration) -> String {
        String(decoding: configuration.bytes, as: UTF8.self)
    }

    @Test(arguments: [
        "", "\n", "a", "a\n", "a\nb", "a\r\nb\r\n", "a\r\nb", "\r\n", "# c\n\n  a = b\t\n", " x\n\n",
    ])
    func `what was added is removed again, and nothing else`(former: String) throws {
        for format in [LineFormat.bazel, .terraform, .pnpm] {
            var configuration = try read(former, format)
            let lines = try ["a.example.org", "b.example.org"].map { try #require(format.line(for: $0, running: "/p")) }
            for line in lines { configuration.add(line) }
            #expect(text(configuration).hasPrefix(former))
            #expect(text(configuration).split(whereSeparator: \.isNewline).suffix(2).elementsEqual(lines) { $0 == $1 })
            for line in lines + ["three"] { configuration.remove(line) }
            #expect(text(configuration) == former)
        }
    }

    @Test func `a line in a comment is not removed, and of two that are the same the last one is`() throws {
        let line = try #require(LineFormat.terraform.line(for: "", running: "/p"))
        var configuration = try read("/*\n\(line)\n*/\n", .terraform)
        configuration.remove(line)
        #expect(text(configuration) == "/*\n\(line)\n*/\n")
        configuration = try read("\(line)\na = 1\n\(line)\n", .terraform)
        configuration.remove(line)
        #expect(text(configuration) == "\(line)\na = 1\n")
    }

    @Test func `a new file has the line alone`() throws {
        var configuration = try #require(LineConfiguration(reading: nil, as: .pnpm))
        configuration.add("a")
        #expect(text(configuration) == "a\n")
    }

    // MARK: What a line says

    private static let lines: [(LineFormat, String, place: String, helper: String)] = [
        (.bazel, "common --credential_helper=a.example.org=/b/c", "a.example.org", "/b/c"),
        (.bazel, "\tbuild:ci --x  --credential_helper=*.example.org=c --y # d", "*.example.org", "c"),
        (.bazel, "build --credential_helper=/all", "", "/all"),
        (.bazel, "build --credential_helper a.example.org=%workspace%/c", "a.example.org", "%workspace%/c"),
        (.terraform, "credentials_helper \"ringback\" {}", "", "ringback"),
        (.terraform, "  credentials_helper \"a-b\"{ # c", "", "a-b"),
        (.terraform, "credentials \"app.example.org\" {", "app.example.org", "credentials"),
        (.terraform, "/* a */ credentials_helper \"x\" {}", "", "x"),
        (.pnpm, "//npm.example.org/:tokenHelper=/b/c", "npm.example.org", "/b/c"),
        (.pnpm, " //npm.example.org:8443/team/:tokenHelper = /b/c ", "npm.example.org:8443/team", "/b/c"),
        (.pnpm, "//npm.example.org/:_authToken=hunter2", "npm.example.org", "_authToken"),
    ]

    @Test(arguments: lines)
    func `is known`(format: LineFormat, line: String, place: String, helper: String) throws {
        let settings = try read("\n\(line)\n", format).settings
        #expect(settings.map(\.place) == [place] && settings.map(\.helper) == [helper], "\(settings)")
        #expect(!settings.contains { $0.helper.contains("hunter2") })
    }

    @Test(arguments: [
        (LineFormat.bazel, "# common --credential_helper=a=b"), (.bazel, "common --credential_helpers=a=b"),
        (.bazel, "common # --credential_helper=a=b"), (.bazel, "common --credential_helper_timeout=5s"),
        (.terraform, "# credentials_helper \"ringback\" {}"), (.terraform, "// credentials_helper \"ringback\" {}"),
        (.terraform, "/*\ncredentials_helper \"ringback\" {}\n*/"), (.terraform, "credentials_helper = \"a\""),
        (.terraform, "a = \"credentials_helper\""), (.pnpm, "; //a/:tokenHelper=b"), (.pnpm, "#//a/:tokenHelper=b"),
        (.pnpm, "registry=https://a/:tokenHelper=b"), (.pnpm, "//a/:always-auth=true"), (.pnpm, "//a/:tokenHelper"),
    ])
    func `without a word about credentials, or in a comment, says nothing`(format: LineFormat, line: String) throws {
        #expect(try read(line, format).settings.isEmpty)
    }

    @Test(arguments: [
        (LineFormat.bazel, "build \\\n"), (.terraform, "{\"credentials\": {}}"), (.terraform, "a = <<E\nb\nE\n"),
        (.terraform, "/* open"), (.pnpm, "[a]\nb = c\n"), (.pnpm, "a = b\r"),
    ])
    func `whose lines do not stand for themselves is not read`(format: LineFormat, text: String) {
        #expect(LineConfiguration(reading: Array(text.utf8), as: format) == nil)
    }

    @Test func `which is no text is not read`() {
        for format in [LineFormat.bazel, .terraform, .pnpm] {
            #expect(LineConfiguration(reading: [0x61, 0xFF], as: format) == nil)
        }
    }

    @Test func `a comment's signs in a string open none`() throws {
        let text =
            "include = [\"example.com/*/*\", \"a//b\", \"c#d\", \"e\\\"/*\"]\ncredentials_helper \"ringback\" {}\n"
        #expect(try read(text, .terraform).settings.map(\.helper) == ["ringback"])
    }

    // MARK: Ringback's line

    private func place(_ url: String, _ format: LineFormat, username: String? = nil) throws -> String? {
        format.place(of: OriginRule(try OriginPattern(parsing: url), username: username))
    }

    @Test func `has a place for each origin that the tool can ask for`() throws {
        #expect(try place("https://b.example.org:8443", .bazel) == "b.example.org")
        #expect(try place("https://b.example.org/a", .bazel) == nil)
        #expect(try place("https://[::1]", .bazel) == nil)
        #expect(try place("https://t.example.org:8443", .terraform) == "t.example.org:8443")
        #expect(try place("https://t.example.org/a", .terraform) == nil)
        #expect(try place("https://n.example.org:8443/a/b", .pnpm) == "n.example.org:8443/a/b")
        #expect(try place("https://n.example.org/a;b", .pnpm) == nil)
        for format in [LineFormat.bazel, .terraform, .pnpm] {
            #expect(try place("https://a.example.org", format, username: "ada") == nil)
            #expect(try place("imaps://a.example.org", format) == nil)
            #expect(try place("http://127.0.0.1:80", format) == nil)
        }
    }

    @Test(arguments: [
        (LineFormat.bazel, "b.example.org", "/x/bazel-credential-ringback"),
        (.terraform, "", "/x/terraform-credentials-ringback"),
        (.pnpm, "n.example.org:8443/a/b", "/x/pnpm-ringback-n.example.org:8443%2Fa%2Fb"),
    ])
    func `is known as Ringback's, and by its name the program knows the place`(
        format: LineFormat, place: String, path: String
    ) throws {
        #expect("/x/" + format.program(for: place) == path)
        var configuration = try read("# mine\n", format)
        configuration.add(try #require(format.line(for: place, running: path)))
        let settings = configuration.settings
        #expect(settings.count == 1 && settings.allSatisfy { format.isOurs($0) && $0.place == place })
        let others = ["common --credential_helper=a=b", "credentials_helper \"b\" {}", "//a/:tokenHelper=b", ""]
        let other = try read(others.joined(separator: "\n"), format)
        #expect(other.settings.count == 1 && !other.settings.contains(where: format.isOurs))
    }

    @Test(arguments: ["/a b/c", "/a#b/c", "/a;b", "/a\nb", "/a\"b", "/a$b", "/é"])
    func `is not written with a path that the tool would read in another way`(path: String) {
        for format in [LineFormat.bazel, .terraform, .pnpm] { #expect(format.line(for: "a", running: path) == nil) }
    }
}
