import Testing

@testable import Adapters

@Suite struct `git's credential protocol` {
    private let credential = AdapterCredential(
        headers: ["Authorization: Bearer t0ken"], username: nil, secret: "t0ken", expiresAt: 1_800_000_000)

    private static let cases = AdapterCase.all(in: "git-credential")

    @Test(arguments: cases) func `is read as its case says`(_ example: AdapterCase) throws {
        let action = try #require(example.head["action"].flatMap(GitCredential.Action.init))
        guard example.head["refused"] == nil else {
            #expect(throws: AdapterFailure.self) { try GitCredential(action, reading: example.input) }
            return
        }
        let read = try GitCredential(action, reading: example.input)
        let expected = example.head["url"].map {
            AdapterRequest(url: $0, username: example.head["username"], rejected: example.head["rejected"])
        }
        #expect(read.request == expected)
        #expect(read.hasAuthType == (example.head["authtype"] == "yes"))
        #expect(read.takesBearer == (example.head["bearer"] == "yes"))
    }

    private func answer(_ input: String, _ credential: AdapterCredential) throws -> String {
        String(
            decoding: try GitCredential(.get, reading: Array(input.utf8)).answer(credential), as: UTF8.self)
    }

    private let server = "protocol=https\nhost=git.example.org\n"
    private let bearer = "capability[]=authtype\nprotocol=https\nhost=git.example.org\nwwwauth[]=Bearer\n"

    @Test func `a token is a password that no helper stores`() throws {
        #expect(
            try answer(server, credential)
                == "username=oauth2\npassword=t0ken\nephemeral=1\npassword_expiry_utc=1800000000\n")
        let named = AdapterCredential(headers: [], username: "ada", secret: "t", expiresAt: nil)
        #expect(try answer(server, named) == "username=ada\npassword=t\nephemeral=1\n")
    }

    @Test func `the capability comes first, and Bearer only where it was offered`() throws {
        #expect(
            try answer(bearer, credential)
                == "capability[]=authtype\nauthtype=Bearer\ncredential=t0ken\nephemeral=1\n"
                + "password_expiry_utc=1800000000\n")
        let basic = "capability[]=authtype\n\(server)wwwauth[]=Basic realm=\"x\"\n"
        #expect(
            try answer(basic, credential)
                == "capability[]=authtype\nusername=oauth2\npassword=t0ken\nephemeral=1\n"
                + "password_expiry_utc=1800000000\n")
    }

    @Test func `a token for another field than Authorization is no Bearer credential`() throws {
        let other = AdapterCredential(headers: ["X-Token: t"], username: nil, secret: "t", expiresAt: nil)
        #expect(try answer(bearer, other).contains("password=t\n"))
    }

    @Test(arguments: ["a\nhost=evil.net", "a\rb", "a\u{0}b", "a\u{7F}b"])
    func `no value adds a line to the answer`(value: String) {
        let secret = AdapterCredential(headers: [], username: nil, secret: value, expiresAt: nil)
        let name = AdapterCredential(headers: [], username: value, secret: "t", expiresAt: nil)
        #expect(throws: AdapterFailure.self) { try answer(server, secret) }
        #expect(throws: AdapterFailure.self) { try answer(server, name) }
    }

    @Test(arguments: ["", "a b", "a\u{E9}b", "a\u{2028}b"]) func `what is no token is not given`(value: String) {
        let other = AdapterCredential(
            headers: ["Authorization: Bearer \(value)"], username: nil, secret: value, expiresAt: nil)
        #expect(throws: AdapterFailure.self) { try answer(server, other) }
        #expect(throws: AdapterFailure.self) { try answer(bearer, other) }
    }

    @Test func `no answer has a refresh token`() throws {
        #expect(!(try answer(server + "oauth_refresh_token=r\n", credential)).contains("refresh"))
    }
}

@Suite struct `The digest of a token` {
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ])
    func `is SHA-256`(text: String, digest: String) { #expect(SHA256.hex(Array(text.utf8)) == digest) }

    @Test(arguments: [
        (55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"),
        (56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"),
        (64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"),
        (1_000_000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
    ])
    func `is right around the size of a block`(count: Int, digest: String) {
        #expect(SHA256.hex([UInt8](repeating: UInt8(ascii: "a"), count: count)) == digest)
    }
}
