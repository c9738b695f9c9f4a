import RingbackBase
import Testing

@testable import Adapters

private let unsendableTokens = ["", "a b", "a\nb", "a\u{0}b", "a\u{7F}", "é", "a\r\nX: y"]

extension AdapterCredential {
    /// A credential that is sent as `Authorization: Bearer`.
    static func bearer(_ token: String, username: String? = nil, expiresAt: Int? = nil) -> AdapterCredential {
        AdapterCredential(
            headers: ["Authorization: Bearer \(token)"], username: username, secret: token, expiresAt: expiresAt)
    }
}

private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

@Suite struct `Every adapter` {
    @Test(arguments: [
        ("bazel-credential", 40), ("cargo-credential", 35), ("docker-credential", 40), ("git-credential", 60),
        ("goauth", 30), ("google-credential", 35), ("keyring", 35), ("kubectl-credential", 50), ("oidc-token", 50),
        ("pnpm-token", 19), ("terraform-credential", 20),
    ])
    func `has its cases`(folder: String, least: Int) { #expect(AdapterCase.all(in: folder).count >= least) }

    @Test(arguments: unsendableTokens) func `gives no token that no header field can have`(token: String) throws {
        let wrong = AdapterCredential.bearer(token)
        let cargo = #"{"v":1,"kind":"get","registry":{"index-url":"sparse+https://cargo.example.org/"}}"#
        let answers: [(String, () throws -> [UInt8])] = [
            ("askpass", { try AskPass(prompt: "Password for 'https://a.example.org': ").answer(wrong) }),
            ("bazel", { try BazelCredential(reading: Array(#"{"uri":"https://b.example.org/"}"#.utf8)).answer(wrong) }),
            ("cargo", { try CargoCredential(reading: Array(cargo.utf8)).answer(wrong) }),
            ("docker", { try DockerCredential(reading: Array("r.example.org".utf8)).answer(wrong) }),
            ("goauth", { try GoAuth(url: "https://go.example.org/mod", response: []).answer(wrong) }),
            ("keyring", { try #require(KeyringCommand(["get", "https://pypi.example.org/", "ada"])).answer(wrong) }),
            ("kubectl", { try KubectlCredential().answer(wrong) }),
            ("pnpm", { try PnpmToken(program: "pnpm-ringback-a.example.org").answer(wrong) }),
            ("terraform", { try TerraformCredential(host: "app.example.org").answer(wrong) }),
        ]
        for (name, answer) in answers { #expect(throws: AdapterFailure.self, "\(name)") { try answer() } }
    }
}

@Suite struct `cargo's credential protocol` {
    private static let cases = AdapterCase.all(in: "cargo-credential")

    private func asked() throws -> CargoCredential {
        let line = #"{"v":1,"kind":"get","registry":{"index-url":"sparse+https://cargo.example.org/"}}"#
        return try CargoCredential(reading: Array(line.utf8))
    }

    @Test(arguments: cases) func `is read as its case says`(_ example: AdapterCase) throws {
        guard let refused = example.head["refused"] else {
            let url = try #require(example.head["url"])
            let read = try CargoCredential(reading: example.input)
            #expect(read.request == AdapterRequest(url: url, username: nil))
            #expect(read.wantsToken == (example.head["wants"] != "no token"))
            return
        }
        let error = try #require(throws: CargoCredential.Refusal.self) { try CargoCredential(reading: example.input) }
        let answer = try JSON(parsing: CargoCredential.answer(error))
        #expect(answer["Err"]?["kind"]?.string == refused)
    }

    @Test func `the answer has the value of the field and until when it may be kept`() throws {
        #expect(
            try text(asked().answer(.bearer("t0ken", expiresAt: 1_800_000_000)))
                == #"{"Ok":{"kind":"get","token":"Bearer t0ken","cache":"expires","expiration":1800000000,"#
                + #""operation_independent":true}}"# + "\n")
        #expect(
            try text(asked().answer(.bearer("t")))
                == #"{"Ok":{"kind":"get","token":"Bearer t","cache":"session","operation_independent":true}}"# + "\n")
    }

    @Test func `a refusal is as cargo reads it`() {
        #expect(text(CargoCredential.answer(.urlNotSupported)) == #"{"Err":{"kind":"url-not-supported"}}"# + "\n")
        #expect(
            text(CargoCredential.answer(.other("a\n\"b")))
                == #"{"Err":{"kind":"other","message":"a\n\"b","caused-by":[]}}"#
                + "\n")
    }

    @Test(arguments: [["X-Token: t"], [], ["Authorization: Bearer t", "X-Key: a"], ["Authorization:t"]])
    func `a token for another field than Authorization is not given`(headers: [String]) {
        let wrong = AdapterCredential(headers: headers, username: nil, secret: "t", expiresAt: nil)
        #expect(throws: AdapterFailure.self) { try asked().answer(wrong) }
    }
}

@Suite struct `GOAUTH` {
    private static let cases = AdapterCase.all(in: "goauth")

    @Test(arguments: cases) func `is read as its case says`(_ example: AdapterCase) throws {
        let url = example.head["argument"] ?? ""
        guard example.head["refused"] == nil else {
            #expect(throws: AdapterFailure.self) { try GoAuth(url: url, response: example.input) }
            return
        }
        let read = try GoAuth(url: url, response: example.input)
        #expect(read.request.url == example.head["url"])
        #expect(read.isRefused == (example.head["rejected"] == "yes"))
    }

    @Test func `a response that is too long and a URL with a line break are refused`() {
        let long = Array("HTTP/1.1 401 Unauthorized\n".utf8) + [UInt8](repeating: 0x0A, count: GoAuth.maxInput)
        #expect(throws: AdapterFailure.self) { try GoAuth(url: "https://go.example.org", response: long) }
        #expect(throws: AdapterFailure.self) { try GoAuth(url: "https://go.example.org/\nhttps://b", response: []) }
    }

    @Test func `the answer names the URL with and without its query`() throws {
        let asked = try GoAuth(url: "https://go.example.org/mod?go-get=1", response: [])
        #expect(
            try text(asked.answer(.bearer("t")))
                == "https://go.example.org/mod?go-get=1\nhttps://go.example.org/mod\n\nAuthorization: Bearer t\n\n")
        let plain = try GoAuth(url: "https://go.example.org/mod", response: [])
        let several = AdapterCredential(headers: ["X-A: t", "X-B: b"], username: nil, secret: "t", expiresAt: nil)
        #expect(try text(plain.answer(several)) == "https://go.example.org/mod\n\nX-A: t\nX-B: b\n\n")
    }

    @Test func `a rejection has the digest of the token`() throws {
        let rejection = try GoAuth(url: "https://go.example.org/mod", response: []).rejection(of: .bearer("abc"))
        #expect(rejection.rejected == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    }

    @Test(arguments: [["X-A: t\nX-B: u"], ["X-A"], [": t"], ["X A: t"], ["X-A: é"]])
    func `a field that would add a line is not given`(headers: [String]) throws {
        let asked = try GoAuth(url: "https://go.example.org/mod", response: [])
        let wrong = AdapterCredential(headers: headers, username: nil, secret: "t", expiresAt: nil)
        #expect(throws: AdapterFailure.self) { try asked.answer(wrong) }
    }
}

@Suite struct `pnpm's tokenHelper` {
    private static let cases = AdapterCase.all(in: "pnpm-token")

    @Test(arguments: cases) func `is read as its case says`(_ example: AdapterCase) throws {
        let name = example.head["argument"] ?? ""
        guard let url = example.head["url"] else {
            #expect(throws: AdapterFailure.self) { try PnpmToken(program: name) }
            return
        }
        let asked = try PnpmToken(program: name)
        // pnpm's own configuration has no scheme either.
        var settings = ConnectionSettings()
        settings.withoutScheme = true
        #expect(asked.request == AdapterRequest(url: url, username: nil, settings: settings))
        guard let answer = example.head["answer"] else { return }
        #expect(try text(asked.answer(.bearer("t"))) == answer + "\n")
    }

    @Test func `has transcripts of pnpm's own`() {
        #expect(Self.cases.count { $0.name.hasPrefix("transcript-") && $0.head["answer"] != nil } >= 2)
    }

    @Test func `the answer is the value of the field`() throws {
        #expect(try text(PnpmToken(program: "pnpm-ringback-a.example.org").answer(.bearer("t"))) == "Bearer t\n")
    }
}

@Suite struct `keyring's command line` {
    private static let cases = AdapterCase.all(in: "keyring")

    @Test(arguments: cases) func `is read as its case says`(_ example: AdapterCase) throws {
        let lines = text(example.input).split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let read = KeyringCommand(example.input.isEmpty ? [] : lines)
        guard let url = example.head["url"] else {
            #expect(read == nil)
            return
        }
        let command = try #require(read)
        var settings = ConnectionSettings()
        settings.withoutScheme = example.head["scheme"] == "none"
        #expect(
            command.request == AdapterRequest(url: url, username: example.head["username"], settings: settings))
        #expect(command.wantsUsername == (example.head["asks"] == "username"))
        #expect(command.wantsJSON == (example.head["output"] == "json"))
    }

    @Test func `a user name or a service with a line break is left to others`() {
        #expect(KeyringCommand(["get", "https://pypi.example.org/", "ada\nb"]) == nil)
        #expect(KeyringCommand(["get", "https://pypi.example.org/\nb", "ada"]) == nil)
    }

    private func answer(_ arguments: String..., for credential: AdapterCredential) throws -> String {
        try text(#require(KeyringCommand(["get", "https://pypi.example.org/"] + arguments)).answer(credential))
    }

    @Test func `the answer is the token, and the user name if it is asked for`() throws {
        #expect(try answer("ada", for: .bearer("t")) == "t\n")
        #expect(try answer("--mode", "creds", for: .bearer("t", username: "bob")) == "bob\nt\n")
        #expect(try answer("ada", "--mode=creds", for: .bearer("t")) == "ada\nt\n")
        #expect(
            try answer("--mode=creds", "--output=json", for: .bearer("t"))
                == #"{"username":"oauth2","password":"t"}"# + "\n")
        #expect(try answer("ada", "--output=json", for: .bearer("t")) == #"{"password":"t"}"# + "\n")
    }

    @Test(arguments: ["a\nb", "a:b", "\u{7F}", "a\u{0}"])
    func `a user name that Basic authentication cannot send is not given`(name: String) {
        #expect(throws: AdapterFailure.self) { try answer("--mode=creds", for: .bearer("t", username: name)) }
    }
}
