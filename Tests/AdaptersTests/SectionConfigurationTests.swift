import HTTPMessages
import Testing

@testable import Adapters

private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

@Suite struct `A configuration of sections` {
    /// Files before and after a line is added to the section `a`. Removing it gives the file of before.
    private static let files: [(before: String, after: String)] = [
        ("", "[a]\nx = 1\n"),
        ("# mine\n", "# mine\n\n[a]\nx = 1\n"),
        ("# mine", "# mine\n\n[a]\nx = 1"),
        ("[b]\ny = 2\n", "[b]\ny = 2\n\n[a]\nx = 1\n"),
        ("[a]\n", "[a]\nx = 1\n"),
        ("[a]", "[a]\nx = 1"),
        ("[ a ]  # mine\ny = 2\n[b]\n", "[ a ]  # mine\nx = 1\ny = 2\n[b]\n"),
        ("[b]\n\n[a]\ny = 2", "[b]\n\n[a]\nx = 1\ny = 2"),
        ("[b]\r\ny = 2\r\n", "[b]\r\ny = 2\r\n\r\n[a]\r\nx = 1\r\n"),
        ("[b]\r\ny = 2", "[b]\r\ny = 2\r\n\r\n[a]\r\nx = 1"),
        ("[a]\r\ny = 2\r\n", "[a]\r\nx = 1\r\ny = 2\r\n"),
        ("[[a]]\ny = 2\n", "[[a]]\ny = 2\n\n[a]\nx = 1\n"),
        ("\n\n", "\n\n\n[a]\nx = 1\n"),
    ]

    @Test(arguments: files) func `gets a line, and is as before without it`(before: String, after: String) throws {
        var file = try #require(SectionConfiguration(reading: Array(before.utf8)))
        let isNew = !file.has("a")
        file.add("x = 1", to: "a")
        #expect(text(file.bytes) == after && file.value(of: "x", in: "a") == "1")
        file.remove("x = 1", from: "a", isSectionOurs: isNew)
        #expect(text(file.bytes) == before)
    }

    @Test func `keeps a section in which something else is now`() throws {
        var file = try #require(SectionConfiguration(reading: Array("[a]\nx = 1\ny = 2\n".utf8)))
        file.remove("x = 1", from: "a", isSectionOurs: true)
        #expect(text(file.bytes) == "[a]\ny = 2\n")
        file.remove("x = 1", from: "a", isSectionOurs: true)
        #expect(text(file.bytes) == "[a]\ny = 2\n")
    }

    @Test(arguments: [[0xFF], Array("x = \"\"\"\n[a]\n\"\"\"".utf8), Array("x = '''\n[a]\n'''".utf8)])
    func `is not read if its lines do not stand for themselves`(bytes: [UInt8]) {
        #expect(SectionConfiguration(reading: bytes) == nil)
    }
}

@Suite struct `cargo's configuration` {
    private static let ours = "/usr/bin/ringback cargo-credential"

    /// Files before and after Ringback is added.
    private static let files: [(before: String, after: String)] = [
        ("", "[registry]\nglobal-credential-providers = [\"cargo:token\", \"\(ours)\"]\n"),
        (
            "[registry]\ndefault = \"a\"  # mine\n",
            "[registry]\nglobal-credential-providers = [\"cargo:token\", \"\(ours)\"]\ndefault = \"a\"  # mine\n"
        ),
        (
            "[registry]\nglobal-credential-providers = [\"cargo:libsecret\"]  # mine\n",
            "[registry]\nglobal-credential-providers = [\"cargo:libsecret\", \"\(ours)\"]  # mine\n"
        ),
        (
            "[registry]\n\"global-credential-providers\" = [\n  'a',  # first\n  \"b\",  # then\n]\n[net]\n",
            "[registry]\n\"global-credential-providers\" = [\n  'a',  # first\n  \"b\", \"\(ours)\",  # then\n]\n[net]\n"
        ),
        (
            "[registry]\nglobal-credential-providers = []\n",
            "[registry]\nglobal-credential-providers = [\"\(ours)\"]\n"
        ),
    ]

    @Test(arguments: files) func `gets one more provider, and is as before without it`(
        before: String, after: String
    ) throws {
        var file = try #require(CargoConfiguration(reading: Array(before.utf8)))
        let isNew = !file.hasSection
        #expect(file.ours == [])
        file.add(Self.ours)
        #expect(text(file.bytes) == after && file.ours == [Self.ours] && !file.isOtherFirst)
        file.remove(Self.ours, isSectionOurs: isNew)
        #expect(text(file.bytes) == before)
    }

    @Test(arguments: [
        "registry.default = \"a\"\n", "registry = { default = \"a\" }\n", "\"registry\".default = 1\n",
        "[registry]\nglobal-credential-providers = \"a\"\n", "[registry]\nglobal-credential-providers = [1]\n",
        "[registry]\nglobal-credential-providers = [\"a\"\n",
    ])
    func `is not read in another form`(file: String) {
        #expect(CargoConfiguration(reading: Array(file.utf8)) == nil)
    }

    @Test func `names Ringback in each way that cargo runs it`() throws {
        let list =
            "[\"cargo:token\", \"ringback cargo-credential\", \"/a/cargo-credential-ringback\", \"ringback\", \"b\"]"
        let file = "[registry]\nglobal-credential-providers = \(list)\n"
        let read = try #require(CargoConfiguration(reading: Array(file.utf8)))
        #expect(read.ours == ["ringback cargo-credential", "/a/cargo-credential-ringback"] && read.isOtherFirst)
    }

    @Test(arguments: ["/a b/ringback", "/a\"/ringback", "/a\\/ringback", "/a\n/ringback"])
    func `is not written with a path that cargo would read as something else`(path: String) {
        #expect(CargoConfiguration.provider(running: path) == nil)
    }
}

@Suite struct `AWS's profiles` {
    private static let line = "credential_process = /usr/bin/ringback aws-credentials work"

    @Test func `get a line with the account's name`() throws {
        let before = "[default]\nregion = eu-central-1\n\n[profile other]\nregion = a\n"
        var file = try #require(AWSProfiles(reading: Array(before.utf8)))
        let line = try #require(AWSProfiles.line(for: "work", running: "/usr/bin/ringback"))
        #expect(line == Self.line && !file.has("work") && file.ours == [])
        file.add(line, to: "work")
        #expect(text(file.bytes) == before + "\n[profile work]\n\(line)\n")
        #expect(file.ours == ["work"] && file.line(of: "work") == line)
        file.remove(line, from: "work", isSectionOurs: true)
        #expect(text(file.bytes) == before)
    }

    @Test func `of the name default have a header of their own`() throws {
        var file = try #require(AWSProfiles(reading: Array("[default]\nregion = a\n".utf8)))
        file.add("credential_process = /a/ringback aws-credentials default", to: "default")
        #expect(text(file.bytes).hasPrefix("[default]\ncredential_process = ") && file.ours == ["default"])
    }

    @Test func `of others are known, and what counts more`() throws {
        let config = "[profile work]\nsso_session = a\ncredential_process=/opt/other  --x\n[sso-session work]\n"
        let file = try #require(AWSProfiles(reading: Array(config.utf8)))
        #expect(file.process(of: "work") == "/opt/other  --x" && !file.isOurs("work") && file.ours == [])
        #expect(file.earlierKey(of: "work") == "sso_session" && file.earlierKey(of: "other") == nil)
        let keys = Array("[work]\naws_access_key_id = A\n".utf8)
        #expect(AWSProfiles.hasKeys(for: "work", in: keys) && !AWSProfiles.hasKeys(for: "other", in: keys))
        #expect(!AWSProfiles.hasKeys(for: "work", in: nil))
    }

    @Test(arguments: ["/a b/ringback", "/a'/ringback", "/a$/ringback"])
    func `are not written with a path that is split`(path: String) {
        #expect(AWSProfiles.line(for: "work", running: path) == nil)
    }
}
