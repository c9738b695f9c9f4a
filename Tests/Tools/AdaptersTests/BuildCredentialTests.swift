import RingbackBase
import Testing

@testable import Adapters

/// Bazel, Terraform and Google's libraries: what they ask, and what they are told.
private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

@Suite struct `Bazel's credential protocol` {
    private static let cases = AdapterCase.all(in: "bazel-credential")

    private func asked() throws -> BazelCredential {
        try BazelCredential(reading: Array(#"{"uri":"https://b.example.org/"}"#.utf8))
    }

    @Test(arguments: cases) func `is read as its case says`(_ example: AdapterCase) throws {
        guard let url = example.head["url"] else {
            #expect(throws: AdapterFailure.self) { try BazelCredential(reading: example.input) }
            return
        }
        let asked = try BazelCredential(reading: example.input)
        #expect(asked.request == AdapterRequest(url: url, username: nil))
        guard let answer = example.head["answer"] else { return }
        #expect(try text(asked.answer(.bearer("t", expiresAt: 1_800_000_000))) == answer + "\n")
    }

    @Test func `has transcripts of Bazel's own`() {
        #expect(Self.cases.count { $0.name.hasPrefix("transcript-") && $0.head["answer"] != nil } >= 3)
    }

    @Test func `the answer has every field, and when they end`() throws {
        #expect(
            try text(asked().answer(.bearer("t", expiresAt: 1_800_000_000)))
                == #"{"headers":{"Authorization":["Bearer t"]},"expires":"2027-01-15T08:00:00Z"}"# + "\n")
        let several = AdapterCredential(
            headers: ["X-A: t", "X-B: \"b\"", "X-A: 2"], username: nil, secret: "t", expiresAt: nil)
        #expect(try text(asked().answer(several)) == #"{"headers":{"X-A":["t","2"],"X-B":["\"b\""]}}"# + "\n")
    }
}

@Suite struct `Terraform's credential protocol` {
    private static let cases = AdapterCase.all(in: "terraform-credential")

    @Test(arguments: cases) func `is read as its case says`(_ example: AdapterCase) throws {
        let host = example.head["argument"] ?? ""
        guard let url = example.head["url"] else {
            #expect(throws: AdapterFailure.self) { try TerraformCredential(host: host) }
            return
        }
        #expect(try TerraformCredential(host: host).request == AdapterRequest(url: url, username: nil))
    }

    @Test func `a host with a line break is refused`() {
        #expect(throws: AdapterFailure.self) { try TerraformCredential(host: "a.example.org\nb.example.org") }
    }

    @Test func `the answer has the token`() throws {
        let asked = try TerraformCredential(host: "app.example.org")
        #expect(try text(asked.answer(.bearer("a\"b"))) == #"{"token":"a\"b"}"# + "\n")
        let wrong = AdapterCredential(headers: ["X-Token: t"], username: nil, secret: "t", expiresAt: nil)
        #expect(throws: AdapterFailure.self) { try asked.answer(wrong) }
    }
}

@Suite struct `The executable of Google's external accounts` {
    private static let cases = AdapterCase.all(in: "google-credential")

    @Test(arguments: cases) func `answers as its case says`(_ example: AdapterCase) throws {
        guard example.head["refused"] != "type" else {
            #expect(throws: AdapterFailure.self) { try GoogleCredential(type: example.head["type"]) }
            return
        }
        let asked = try GoogleCredential(type: example.head["type"])
        let token = AdapterCredential.bearer(text(example.input), expiresAt: 1_800_000_000)
        guard let answer = example.head["answer"] else {
            #expect(throws: AdapterFailure.self) { try asked.answer(token) }
            return
        }
        #expect(try text(asked.answer(token)) == answer + "\n")
    }

    @Test func `a token of any length is given`() throws {
        let part = String(repeating: "a", count: 1 << 18)
        let json = try JSON(parsing: GoogleCredential(type: nil).answer(.bearer("\(part).\(part).\(part)")))
        #expect(json["id_token"]?.string?.utf8.count == 3 << 18 | 2)
    }

    @Test func `says why there is no token`() {
        #expect(
            text(GoogleCredential.failure(code: "sign_in_required", message: "a\n\"b"))
                == #"{"version":1,"success":false,"code":"sign_in_required","message":"a\n\"b"}"# + "\n")
    }
}
