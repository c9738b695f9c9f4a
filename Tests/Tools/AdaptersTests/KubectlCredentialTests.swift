import RingbackBase
import Testing

@testable import Adapters

@Suite struct `kubectl's credential protocol` {
    private static let cases = AdapterCase.all(in: "kubectl-credential")
    private let credential = AdapterCredential(
        headers: ["Authorization: Bearer t0ken"], username: nil, secret: "t0ken", expiresAt: 1_800_000_000)

    @Test(arguments: cases) func `is read as its case says`(_ example: AdapterCase) throws {
        guard example.head["refused"] == nil else {
            #expect(throws: AdapterFailure.self) { try KubectlCredential(reading: example.input) }
            return
        }
        let read = try KubectlCredential(reading: example.input)
        var settings = ConnectionSettings()
        settings.authorities = Set([example.head["ca_sha256"]].compactMap(\.self))
        settings.serverNames = Set([example.head["tls_server_name"]].compactMap(\.self))
        settings.skipsVerification = example.head["insecure_skip_tls_verify"] == "yes"
        settings.proxies = Set([example.head["proxy_url"]].compactMap(\.self))
        let request = example.head["url"].map { AdapterRequest(url: $0, username: nil, settings: settings) }
        #expect(read.request == request && read.authorityFile == example.head["authority_file"])
        #expect(read.isInteractive == (example.head["interactive"] == "yes"))
        #expect(read.version == example.head["version"])
    }

    @Test func `input that is longer than a variable can be is refused`() throws {
        let json =
            #"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":true}}"#
        let padded = Array(json.utf8) + [UInt8](repeating: 0x20, count: KubectlCredential.maxInput - json.utf8.count)
        #expect(try KubectlCredential(reading: padded).isInteractive)
        #expect(throws: AdapterFailure.self) { try KubectlCredential(reading: padded + [0x20]) }
    }

    @Test func `a certificate authority that was read from its file is part of the lookup`() throws {
        let json =
            #"{"apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{"server":"https://k8s.example.org","#
            + #""tls-server-name":"k8s","certificate-authority":"/ca.crt"}}}"#
        let settings = try #require(
            KubectlCredential(reading: Array(json.utf8)).request(trusting: Array("abc".utf8))?.settings)
        #expect(
            settings.authorities == ["ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"]
                && settings.serverNames == ["k8s"])
    }

    @Test func `without the variable the answer has version v1`() throws {
        let read = KubectlCredential()
        #expect(read.request == nil && !read.isInteractive)
        #expect(String(decoding: try read.answer(credential), as: UTF8.self).contains("k8s.io/v1\""))
    }

    private func reader(_ version: String) throws -> KubectlCredential {
        let json =
            #"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/\#(version)","spec":{"interactive":false}}"#
        return try KubectlCredential(reading: Array(json.utf8))
    }

    private func answer(_ credential: AdapterCredential, to version: String = "v1") throws -> String {
        String(decoding: try reader(version).answer(credential), as: UTF8.self)
    }

    @Test(arguments: ["v1", "v1beta1"])
    func `the answer has the version of the question, the token and its expiry`(version: String) throws {
        #expect(
            try answer(credential, to: version)
                == #"{"apiVersion":"client.authentication.k8s.io/\#(version)","kind":"ExecCredential","#
                + #""status":{"expirationTimestamp":"2027-01-15T08:00:00Z","token":"t0ken"}}"# + "\n")
    }

    @Test func `without an expiry the answer has none`() throws {
        let endless = AdapterCredential(
            headers: ["Authorization: Bearer a\"\\b"], username: "ada", secret: "a\"\\b", expiresAt: nil)
        let json = try JSON(parsing: try answer(endless).utf8)
        #expect(json["status"] == ["token": "a\"\\b"])
    }

    @Test(arguments: [
        ["X-Token: t0ken"], [], ["Authorization: Bearer t0ken", "X-Key: a"], ["Authorization: token t0ken"],
    ])
    func `a token for another field than Authorization is not given`(headers: [String]) throws {
        let wrong = AdapterCredential(headers: headers, username: nil, secret: "t0ken", expiresAt: nil)
        #expect(throws: AdapterFailure.self) { try answer(wrong) }
    }
}
