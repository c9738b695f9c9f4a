import RingbackBase
import Testing

@testable import OAuth

private let vectors = VectorFile.all(in: "callbacks")

@Suite struct `Authorization response` {
    private func read(_ vector: VectorFile) throws -> AuthorizationResponse {
        guard vector["arrives"] != "form" else { return try AuthorizationResponse(parsingForm: vector.content) }
        guard let url = try? WebURL(parsing: String(decoding: vector.content, as: UTF8.self)) else {
            throw AuthorizationResponse.Failure.malformed
        }
        return try AuthorizationResponse(parsing: url)
    }

    @Test func `the vectors are there`() { #expect(vectors.count >= 150) }

    @Test(arguments: vectors) func `a callback means what its vector says`(vector: VectorFile) throws {
        let expected = (vector["expect"] ?? "").split(separator: " ", maxSplits: 1).map(String.init)
        try #require(expected.count == 2)
        do {
            let response = try read(vector)
            switch response.outcome {
            case .code(let code):
                #expect(expected[0] == "code")
                #expect(code.revealed() == expected[1])
            case .error(let refusal):
                #expect(expected[0] == "refusal")
                #expect(refusal == .init(code: expected[1], message: vector["message"], status: 0))
            }
            #expect(response.state.revealed() == vector["state"])
            #expect(response.issuer == vector["issuer"])
            if let verdict = vector["issuer_check"] {
                let isAccepted = response.check(
                    issuer: vector["issuer_expected"], isAdvertised: vector["issuer_advertised"] == "yes")
                #expect(isAccepted == (verdict == "passes"))
            }
        } catch let failure as AuthorizationResponse.Failure {
            let name =
                switch failure {
                case .repeatedParameter(let parameter): "repeatedParameter \(parameter)"
                default: "\(failure)"
                }
            #expect(expected == ["failure", name])
        }
    }

    @Test(
        arguments: [
            // iss, expected, advertised, accepted
            ("https%3A%2F%2Fid.example", "https://id.example", true, true),
            ("https%3A%2F%2Fid.example", "https://id.example", false, true),
            ("https%3A%2F%2Fid.example%2F", "https://id.example", true, false),
            ("https%3A%2F%2FID.example", "https://id.example", true, false),
            ("https%3A%2F%2Fid.example%3A443", "https://id.example", true, false),
            ("https%253A%252F%252Fid.example", "https://id.example", true, false),
            ("https%3A%2F%2Fevil.example", "https://id.example", false, false),
            ("", "https://id.example", false, false),
            (nil, "https://id.example", false, true),
            ("https%3A%2F%2Fid.example", nil, false, true),
            (nil, nil, false, true),
        ] as [(String?, String?, Bool, Bool)])
    func `NAT-20 to NAT-23: the issuer is compared byte for byte, for codes and errors`(
        issuer: String?, expected: String?, isAdvertised: Bool, isAccepted: Bool
    ) throws {
        for outcome in ["code=c1", "error=access_denied"] {
            let query = "\(outcome)&state=s1" + (issuer.map { "&iss=\($0)" } ?? "")
            let response = try AuthorizationResponse(parsingQuery: query)
            #expect(response.check(issuer: expected, isAdvertised: isAdvertised) == isAccepted)
        }
    }

    @Test func `an announced issuer may be missing beside an error, never beside a code`() throws {
        for (outcome, isAccepted) in [("code=c1", false), ("error=access_denied", true)] {
            let response = try AuthorizationResponse(parsingQuery: "\(outcome)&state=s1")
            #expect(response.check(issuer: "https://id.example", isAdvertised: true) == isAccepted)
        }
    }

    @Test func `a code of 8 KiB is read, a longer one is malformed`() throws {
        let longest = String(repeating: "c", count: AuthorizationResponse.maxCode)
        let response = try AuthorizationResponse(parsingQuery: "code=\(longest)&state=s")
        #expect(response.outcome == .code(Secret(longest)))
        #expect(throws: AuthorizationResponse.Failure.malformed) {
            try AuthorizationResponse(parsingQuery: "code=\(longest)c&state=s")
        }
    }

    @Test func `an error's words are cut to their length`() throws {
        let response = try AuthorizationResponse(
            parsingQuery: "error=\(String(repeating: "e", count: 100))&state=s&error_description="
                + String(repeating: "d", count: 1_000))
        guard case .error(let refusal) = response.outcome else { throw Unexpected("a code") }
        #expect(refusal.code.utf8.count == 64)
        #expect(refusal.message?.utf8.count == 300)
    }

    @Test func `a flow is found by the SHA-256 of its state`() throws {
        let response = try AuthorizationResponse(parsingQuery: "code=c&state=abc")
        // FIPS 180-2 appendix B.1
        #expect(response.stateKey.prefix(4) == [0xBA, 0x78, 0x16, 0xBF])
        #expect(response.stateKey.count == 32)
        #expect(response.stateKey == AuthorizationResponse.key(forState: Secret("abc")))
        #expect(response.stateKey != AuthorizationResponse.key(forState: Secret("Abc")))
    }

    @Test func `a response prints no secret`() throws {
        let response = try AuthorizationResponse(parsingQuery: "code=hunter2&state=hunter3")
        var text = ""
        dump(response, to: &text)
        #expect(!(text + "\(response)").contains("hunter"))
    }
}
