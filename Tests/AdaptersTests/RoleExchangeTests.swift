import HTTPMessages
import Secrets
import StrictJSON
import Testing

@testable import Adapters

@Suite struct `An exchange for credentials of a role` {
    private static let cases = AdapterCase.all(in: "role-exchange")

    @Test func `has cases`() { #expect(Self.cases.count >= 80) }

    @Test(arguments: cases) func `has a response that is read as its case says`(_ example: AdapterCase) throws {
        let status = try #require(example.head["status"].flatMap { Int($0) })
        let read = Result { () throws(RoleExchange.Failure) in
            try RoleExchange.credentials(in: example.input, status: status)
        }
        switch read {
        case .success(let credentials):
            #expect(credentials.accessKeyID == example.head["key"])
            #expect(credentials.secretAccessKey.revealed() == example.head["secret"])
            #expect(credentials.sessionToken.revealed() == example.head["token"])
            #expect(String(credentials.expiresAt) == example.head["expires"])
        case .failure(.refused(let code, let message)):
            #expect(code == example.head["refused"] && message == example.head["message"])
        case .failure(.unavailable(let shown)):
            #expect(example.head["unavailable"] == "yes" && shown == status)
        case .failure(.invalid(let reason)):
            #expect(example.head["invalid"] == "yes" && !reason.isEmpty && !reason.hasSuffix("."), "\(reason)")
        }
        if case .failure(let failure) = read {
            #expect(failure.isOfExpiredToken == (example.head["expired"] == "yes"))
        }
    }

    @Test func `is a form with the token in it`() throws {
        let exchange = RoleExchange(roleARN: "arn:aws:iam::1:role/a", sessionName: "a=b", seconds: 900)
        let pairs = try FormEncoding.parse(exchange.form(token: Secret("t&o+k")).revealed())
        let expected = [
            ("Action", "AssumeRoleWithWebIdentity"), ("Version", "2011-06-15"), ("RoleArn", "arn:aws:iam::1:role/a"),
            ("RoleSessionName", "a=b"), ("DurationSeconds", "900"), ("WebIdentityToken", "t&o+k"),
        ]
        #expect(pairs == expected.map { FormEncoding.Pair($0.0, $0.1) })
    }

    @Test func `yields what credential_process prints`() throws {
        let credentials = RoleCredentials(
            accessKeyID: "ASIA", secretAccessKey: "s/\"", sessionToken: "t", expiresAt: 1_800_000_000)
        let answer = try #require(credentials).processAnswer
        #expect(answer.last == 0x0A && answer.count { $0 == 0x0A } == 1)
        #expect(
            try JSON(parsing: answer) == [
                "Version": 1, "AccessKeyId": "ASIA", "SecretAccessKey": "s/\"", "SessionToken": "t",
                "Expiration": "2027-01-15T08:00:00Z",
            ])
    }

    @Test func `shows no secret when it is printed`() throws {
        let credentials = try #require(
            RoleCredentials(accessKeyID: "A", secretAccessKey: "hidden", sessionToken: "concealed", expiresAt: 1))
        #expect(!"\(credentials)".contains("hidden") && !"\(credentials)".contains("concealed"))
    }
}
