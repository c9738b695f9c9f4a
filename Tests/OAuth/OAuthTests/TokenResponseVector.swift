import RingbackBase
import Testing

@testable import OAuth

extension VectorFile {
    var response: HTTPResponse {
        var fields = HTTPFields()
        for line in all("field") {
            let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
            fields.append(parts[0], String(parts[1].drop { $0 == " " }))
        }
        return HTTPResponse(status: number("status") ?? 0, fields: fields, body: Secret(bytes: content))
    }

    func checkTokenAnswer() throws {
        let expected = try #require(self["expect"])
        let answer: TokenResponse
        do throws(OAuthError) {
            answer = try TokenResponse(reading: response)
        } catch {
            switch error {
            case .refused(let refusal):
                #expect(expected == "refused \(refusal.code)")
                #expect(refusal.message == self["message"])
                #expect(refusal.status == number("status"))
                #expect((self["remedy"] == "signInAgain") == refusal.endsGrant)
            case .unavailable(.token, let status, let retryAfter):
                #expect(expected == "unavailable")
                #expect(status == number("status"))
                #expect(retryAfter == number("retry_after"))
            case .failing(let refusal, let retryAfter):
                #expect(expected == "unavailable")
                #expect(refusal.status == number("status"))
                #expect(retryAfter == number("retry_after"))
            case .invalid(.token, let reason):
                #expect(expected == "invalid")
                #expect(!reason.isEmpty)
            default: Issue.record("\(error)")
            }
            return
        }
        #expect(answer.refreshToken?.revealed() == self["refresh_token"])
        do throws(OAuthError) {
            let tokens = try answer.tokenSet()
            #expect(expected == "tokens")
            #expect(tokens.accessToken.revealed() == self["access_token"])
            #expect(tokens.tokenType == "Bearer")
            #expect(tokens.expiresIn == number("expires_in"))
            #expect(tokens.refreshToken == answer.refreshToken)
            #expect(tokens.idToken?.revealed() == self["id_token"])
            #expect(tokens.scope == self["scope"])
            #expect(tokens.refreshExpiresIn == number("refresh_expires_in"))
        } catch {
            #expect(expected == "unusable")
            switch error {
            case .invalid(.token, _), .unavailable(.token, _, _): break
            default: Issue.record("\(error)")
            }
        }
    }
}
