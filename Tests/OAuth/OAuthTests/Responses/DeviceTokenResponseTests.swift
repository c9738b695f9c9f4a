import RingbackBase
import Testing

@testable import OAuth

@Suite struct `Answers to a device's questions` {
    private func read(
        _ status: Int, _ body: String, type: String = "application/json", retryAfter: String? = nil
    ) throws(OAuthError) -> DeviceTokenResponse {
        var fields = HTTPFields([("Content-Type", type)])
        if let retryAfter { fields.append("Retry-After", retryAfter) }
        return try DeviceTokenResponse(reading: HTTPResponse(status: status, fields: fields, body: Secret(body)))
    }

    private func event(_ status: Int, _ body: String, type: String = "application/json") -> DevicePace.Event? {
        guard case .waiting(let event)? = try? read(status, body, type: type) else { return nil }
        return event
    }

    private func failure(_ status: Int, _ body: String) -> OAuthError? {
        do throws(OAuthError) {
            _ = try read(status, body)
            return nil
        } catch {
            return error
        }
    }

    @Test func `DEV-04: a question holds the grant, the code and the client`() throws {
        for authentication in [ClientAuthentication.none, .clientSecretPost, .clientSecretBasic] {
            let request = TokenRequest.deviceCode(
                Secret("d c"),
                registration: ClientRegistration(
                    clientID: "me", authentication: authentication, secret: Secret("hush")),
                endpoint: "https://id.example.org/token")
            let pairs = try FormEncoding.parse(request.body?.revealedBytes() ?? [])
            let form = Dictionary(pairs.map { ($0.name, $0.value) }) { $1 }
            #expect(form["grant_type"] == "urn:ietf:params:oauth:grant-type:device_code")
            #expect(form["device_code"] == "d c" && form["client_id"] == "me" && pairs.count == form.count)
        }
    }

    @Test(arguments: [200, 400, 401, 403, 428, 429])
    func `"not yet" is understood at whatever status it is said`(_ status: Int) {
        #expect(event(status, #"{"error":"authorization_pending"}"#) == .pending)
        #expect(event(status, #"{"error":"slow_down"}"#) == .slowDown(interval: nil))
        #expect(event(status, #"{"error":"slow_down","interval":20}"#) == .slowDown(interval: .seconds(20)))
    }

    @Test func `GitHub's forms are understood`() {
        let form = "application/x-www-form-urlencoded"
        #expect(event(200, "error=authorization_pending&error_description=x", type: form) == .pending)
        #expect(event(200, "error=slow_down&interval=10", type: form) == .slowDown(interval: .seconds(10)))
    }

    @Test func `a server that is down says nothing of the person, whatever its page says`() {
        for status in [500, 502, 503] {
            let refusal = OAuthError.ErrorResponse(code: "authorization_pending", message: nil, status: status)
            #expect(failure(status, #"{"error":"authorization_pending"}"#) == .failing(refusal, retryAfter: nil))
            for body in ["", "<html>"] {
                #expect(failure(status, body) == .unavailable(.token, status: status, retryAfter: nil))
            }
        }
    }

    @Test(arguments: [
        "access_denied", "expired_token", "invalid_grant", "invalid_client", "unsupported_grant_type",
        "bad_device_code",
    ])
    func `DEV-07: every other error is one`(_ code: String) throws {
        guard case .refused(let refusal)? = failure(400, #"{"error":"\#(code)"}"#)
        else { throw Unexpected("no refusal") }
        #expect(refusal.code == code)
    }

    @Test func `tokens are tokens`() throws {
        guard case .granted(let answer) = try read(200, #"{"access_token":"a","token_type":"Bearer"}"#)
        else { throw Unexpected("nothing granted") }
        #expect(try answer.tokenSet().accessToken == Secret("a"))
        #expect(throws: OAuthError.self) { try read(200, "<html>", type: "text/html") }
        #expect(throws: OAuthError.self) { try read(302, #"{"error":"authorization_pending"}"#) }
    }
}
