import RingbackBase
import Testing

@testable import Adapters

@Suite struct `docker's credential protocol` {
    private static let cases = AdapterCase.all(in: "docker-credential")

    @Test(arguments: cases) func `is read as its case says`(_ example: AdapterCase) throws {
        guard example.head["refused"] == nil else {
            #expect(throws: AdapterFailure.self) { try DockerCredential(reading: example.input) }
            return
        }
        let url = try #require(example.head["url"])
        #expect(try DockerCredential(reading: example.input).request == AdapterRequest(url: url, username: nil))
    }

    @Test func `an empty input gets the text that tools know`() {
        #expect(throws: AdapterFailure("no credentials server URL")) { try DockerCredential(reading: []) }
    }

    private func answer(_ secret: String, username: String?, for server: String = "r.example.org") throws -> String {
        let credential = AdapterCredential(headers: [], username: username, secret: secret, expiresAt: 1)
        return String(
            decoding: try DockerCredential(reading: Array("\(server)\n".utf8)).answer(credential), as: UTF8.self)
    }

    @Test func `the answer has the server as the tool named it`() throws {
        #expect(
            try answer("t0ken", username: "ada")
                == #"{"ServerURL":"r.example.org","Username":"ada","Secret":"t0ken"}"# + "\n")
        #expect(
            try answer("t", username: nil, for: "https://r.example.org/v1/").contains(#""https://r.example.org/v1/""#))
    }

    @Test func `the user name is that of the table, and oauth2 without one`() throws {
        #expect(try answer("t", username: nil).contains(#""Username":"oauth2""#))
        #expect(try answer("t", username: "<token>").contains(#""Username":"<token>""#))
    }

    @Test(arguments: ["a:b", "a\nb", "a\u{0}b", "\u{7F}"])
    func `a user name that Basic authentication cannot send is not given`(name: String) {
        #expect(throws: AdapterFailure.self) { try answer("t", username: name) }
    }

    @Test func `what is in the answer is escaped`() throws {
        let json = try JSON(parsing: try answer("a\"\\", username: "\"é\\").utf8)
        #expect(json == ["ServerURL": "r.example.org", "Username": "\"é\\", "Secret": "a\"\\"])
    }

    @Test func `the list has web servers only`() throws {
        let origins = try ["https://r.example.org", "smtp://mail.example.org:587", "http://127.0.0.1:5000/team"].map {
            (pattern: try OriginPattern(parsing: $0), username: $0.hasPrefix("https") ? "ada" : nil)
        }
        #expect(
            String(decoding: DockerCredential.list(origins), as: UTF8.self)
                == #"{"https://r.example.org":"ada","http://127.0.0.1:5000/team":"oauth2"}"# + "\n")
        #expect(DockerCredential.list([]) == Array("{}\n".utf8))
    }
}
