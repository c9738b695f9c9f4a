import RingbackBase
import Testing

@testable import OAuth

@Suite struct `Device authorization` {
    private static let endpoint = "https://id.example.org/device_authorization"
    private static let honest: JSON = [
        "device_code": "GmRhmhcxhwAzkoEqiMEg_DnyEysNkuNhszIySk9eS", "user_code": "WDJB-MJHT",
        "verification_uri": "https://example.com/device",
        "verification_uri_complete": "https://example.com/device?user_code=WDJB-MJHT", "expires_in": 900, "interval": 7,
    ]

    private func read(
        _ changes: [String: JSON?] = [:], status: Int = 200, from endpoint: String = endpoint
    ) throws(OAuthError) -> DeviceAuthorization {
        var object = Self.honest.object ?? JSONObject()
        for (name, value) in changes {
            object[name] = nil
            if let value { object[name] = value }
        }
        return try DeviceAuthorization(
            parsing: HTTPResponse(
                status: status, fields: HTTPFields([("Content-Type", "application/json")]),
                body: Secret(bytes: JSON.object(object).serialized())), from: endpoint)
    }

    private func reason(_ changes: [String: JSON?]) -> String? {
        do throws(OAuthError) {
            _ = try read(changes)
            return nil
        } catch {
            guard case .invalid(.deviceAuthorization, let reason) = error else { return "\(error)" }
            return reason
        }
    }

    @Test func `DEV-01: the request is a form with client_id, scope and the client's authentication`() throws {
        for authentication in [ClientAuthentication.none, .clientSecretPost, .clientSecretBasic] {
            let registration = ClientRegistration(
                clientID: "me", authentication: authentication, secret: Secret("hush"))
            let request = DeviceAuthorization.request(
                scopes: ["openid", "email"], additionalParameters: [("audience", "api")], registration: registration,
                endpoint: Self.endpoint)
            #expect(request.method == "POST" && request.url == Self.endpoint)
            #expect((request.authorization != nil) == (authentication == .clientSecretBasic))
            let pairs = try FormEncoding.parse(request.body?.revealedBytes() ?? [])
            #expect(Set(pairs.map(\.name)).count == pairs.count)
            let form = Dictionary(pairs.map { ($0.name, $0.value) }) { $1 }
            #expect(form["client_id"] == "me" && form["scope"] == "openid email" && form["audience"] == "api")
            #expect((form["client_secret"] != nil) == (authentication == .clientSecretPost))
        }
    }

    @Test func `an honest answer is taken as it is`() throws {
        let answer = try read()
        #expect(answer.userCode == "WDJB-MJHT" && answer.verificationURI == "https://example.com/device")
        #expect(answer.verificationURIComplete == "https://example.com/device?user_code=WDJB-MJHT")
        #expect(answer.expiresIn == 900 && answer.interval == 7)
        #expect(answer.deviceCode == Secret("GmRhmhcxhwAzkoEqiMEg_DnyEysNkuNhszIySk9eS"))
    }

    @Test func `Google's verification_url is understood`() throws {
        for missing in [JSON?.none, .null] {
            let answer = try read(["verification_uri": missing, "verification_url": "https://www.google.com/device"])
            #expect(answer.verificationURI == "https://www.google.com/device")
        }
    }

    @Test func `DEV-02: without an interval it is five seconds`() throws {
        #expect(try read(["interval": JSON?.none]).interval == 5)
    }

    @Test(arguments: [
        (JSON.integer(0), 5), (.integer(-3), 5), (.integer(1), 5), (.integer(1_000_000_000), 895),
        (.double(7.9), 7), (.string("12"), 12), (.string("soon"), 5), (.null, 5), (.bool(true), 5),
        (.double(1e300), 895),
    ])
    func `DEV-14: a silly interval is clamped between five seconds and the code's life`(
        _ stated: JSON, _ used: Int
    ) throws {
        #expect(try read(["interval": stated]).interval == used)
    }

    @Test(arguments: [
        (JSON.integer(1), 1), (.integer(3_600), 1_800), (.string("600"), 600), (.double(59.5), 59), (.null, 1_800),
        (.string("long"), 1_800), (.integer(.max), 1_800),
    ])
    func `DEV-09: a life that is missing or endless is half an hour`(_ stated: JSON, _ used: Int) throws {
        #expect(try read(["expires_in": stated]).expiresIn == used)
        #expect(try read(["expires_in": JSON?.none]).expiresIn == 1_800)
    }

    @Test(arguments: [JSON.integer(0), .integer(-1), .string("0"), .double(-5)])
    func `DEV-09: codes that have expired already are refused`(_ stated: JSON) {
        #expect(reason(["expires_in": stated])?.contains("expired") == true)
    }

    @Test(arguments: [
        "http://example.com/device", "http://127.0.0.1:8080/device", "https://127.0.0.1/device", "https://[::1]/device",
        "https://localhost/device", "https://2130706433/device", "javascript:alert(1)", "ftp://example.com/", "",
        "https://user@example.com/device", "https://example.com/de vice", "https://example.com/\u{1B}[2J",
        "https://exаmple.com/device", "//example.com/device", "example.com/device",
        "https://example.com/" + String(repeating: "a", count: 2_048),
    ])
    func `PR-22: an address that is not https, or leads home, is refused; as the complete one it is left out`(
        _ address: String
    ) throws {
        #expect(reason(["verification_uri": .string(address)])?.contains("verification_uri") == true)
        let answer = try read(["verification_uri_complete": .string(address)])
        #expect(answer.verificationURIComplete == nil && answer.userCode == "WDJB-MJHT")
    }

    @Test func `a provider on this machine may have its page here`() throws {
        let address = "http://127.0.0.1:8080/device"
        let answer = try read(
            ["verification_uri": .string(address)], from: "http://127.0.0.1:8080/device_authorization")
        #expect(answer.verificationURI == address)
    }

    @Test(arguments: [
        "", " ", " WDJB", "WDJB ", String(repeating: "A", count: 33), "WDJB\u{1B}[31m", "WDJB\nMJHT", "WDJB\u{202E}X",
        "ВДЖБ", "WD\u{200B}JB", "<b>", "a=b", "\u{7F}", "WDJB\u{0}",
    ])
    func `PR-22: a code that nobody could type, or that is none, is refused`(_ code: String) {
        #expect(reason(["user_code": .string(code)])?.contains("user_code") == true)
    }

    @Test(arguments: ["1", "wdjb-mjht", "123 456 789", "ABC_DEF.GHI", String(repeating: "Z", count: 32)])
    func `a code may be of letters, digits and what groups them`(_ code: String) throws {
        #expect(try read(["user_code": .string(code)]).userCode == code)
    }

    @Test func `answers without their members are refused`() {
        for name in ["device_code", "user_code", "verification_uri"] {
            #expect(reason([name: JSON?.none])?.contains(name) == true)
            #expect(reason([name: 7])?.contains(name) == true)
        }
        #expect(reason(["device_code": "a\nb"])?.contains("device_code") == true)
    }

    @Test func `errors are the provider's, at 200 too`() throws {
        for status in [200, 400, 401, 403] {
            guard case .refused(let refusal)? = failure(["error": "device_flow_disabled"], status)
            else { throw Unexpected(status) }
            #expect(refusal.code == "device_flow_disabled")
        }
        guard case .unavailable(.deviceAuthorization, 503, _)? = failure([:], 503),
            case .invalid(.deviceAuthorization, _)? = failure([:], 302),
            case .invalid(.deviceAuthorization, _)? = failure([:], 404)
        else { throw Unexpected("a status") }
    }

    private func failure(_ changes: [String: JSON?], _ status: Int) -> OAuthError? {
        do throws(OAuthError) {
            _ = try read(changes, status: status)
            return nil
        } catch {
            return error
        }
    }
}
