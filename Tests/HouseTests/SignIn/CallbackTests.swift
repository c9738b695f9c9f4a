import RingbackBase
import Testing

/// A callback that is not the genuine one: made from it, by somebody who may know all of it.
private struct Forgery: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let make: @Sendable (LocalURL) throws -> String

    init(_ name: String, _ make: @escaping @Sendable (LocalURL) throws -> String) {
        testDescription = name
        self.make = make
    }

    static let all = [
        Forgery("an unknown state") { try $0.setting("state", to: String(repeating: "A", count: 43)).text },
        Forgery("a state that is cut") { try $0.setting("state", to: String(($0["state"] ?? "").dropLast())).text },
        Forgery("no state") { try $0.setting("state", to: nil).text },
        Forgery("an empty state") { try $0.setting("state", to: "").text },
        Forgery("two states") { $0.text + "&state=\($0["state"] ?? "")" },
        Forgery("two codes") { $0.text + "&code=another" },
        Forgery("an empty code") { try $0.setting("code", to: "").text },
        Forgery("no code and no error") { try $0.setting("code", to: nil).text },
        Forgery("a code and an error") { $0.text + "&error=access_denied" },
        Forgery("the wrong iss") { try $0.setting("iss", to: "https%3A%2F%2Fevil.example").text },
        Forgery("an iss with one slash more") { try $0.setting("iss", to: ($0["iss"] ?? "") + "%2F").text },
        Forgery("no iss, though the provider announces one") { try $0.setting("iss", to: nil).text },
        Forgery("two iss") { $0.text + "&iss=\($0["iss"] ?? "")" },
        Forgery("another path") { $0.text.replacing("/callback/work", with: "/callback/home") },
        Forgery("a longer path") { $0.text.replacing("/callback/work", with: "/callback/work/") },
        Forgery("an error without a state") {
            try $0.with([("error", "access_denied"), ("iss", $0["iss"] ?? "")]).text
        },
        Forgery("an error with an unknown state") { url in
            try url.with([("error", "access_denied"), ("state", "unknown"), ("iss", url["iss"] ?? "")]).text
        },
        Forgery("an error with the wrong iss") { url in
            try url.with([("error", "access_denied"), ("state", url["state"] ?? ""), ("iss", "https%3A%2F%2Fevil")])
                .text
        },
        Forgery("tokens (implicit flow)") { $0.text + "&access_token=at-from-the-front" },
        Forgery("an answer in a JWT, which nobody asked for (JARM)") {
            try $0.with([("response", "eyJhbGciOiJub25lIn0.eyJjb2RlIjoieCJ9."), ("state", $0["state"] ?? "")]).text
        },
        Forgery("a broken escape in the code") { $0.text.replacing("code=", with: "code=%zz") },
    ]
}

@Suite struct `A callback` {
    /// FAPI-16, FAPI-17, FAPI-18, FAPI-19.
    @Test func `LB-03, LB-04, JARM-01: a forged callback changes nothing, on loopback or the socket`() async throws {
        try await Stage.play { stage in
            let flow = try await stage.begin()
            let genuine = try await Browser.signIn(at: flow.authorizationURL)
            for forgery in Forgery.all {
                let forged = try forgery.make(genuine)
                let answer = try await Browser.load(LocalURL(forged))
                // One that has the state is a response of the provider that is refused, and its page says so.
                let hasState = forged.contains("state=\(genuine["state"] ?? "")")
                #expect(
                    answer.status == 303 && answer.location == (hasState ? "/failed" : "/unknown"),
                    "\(forgery.testDescription): \(answer)")
                let delivered = try await stage.api(
                    "POST", "/v1/callbacks", ["url": .string(forged)], status: 400, code: "invalid_callback")
                #expect(delivered["user_message"]?.string == "Sign in failed. Please try again.")
            }
            let pending = try await stage.api("GET", "/v1/flows/\(flow.id)")
            #expect(pending["status"] == "pending" && pending["error"]?["code"] == "invalid_callback", "\(pending)")
            #expect(try await stage.sandbox.counters().requests("token") == 0)
            #expect(try await stage.account()["error"] == nil)
            // The genuine one still counts.
            #expect(try await Browser.deliver(genuine).answer.location == "/done")
            #expect(try await stage.account()["subject"]?.string == "alice")
        }
    }

    @Test func `NAT-13: a provider that refuses S256 is not asked again without it`() async throws {
        try await Stage.play { stage in
            // Where the sign-in begins, and where the code is redeemed.
            let first = try await stage.begin()
            let refusal = try await Browser.signIn(at: first.authorizationURL)
                .setting("code", to: nil).setting("error", to: "invalid_request")
                .setting("error_description", to: "code_challenge_method")
            #expect(try await Browser.deliver(refusal).answer.location == "/failed")
            #expect(try await stage.sandbox.counters().requests("token") == 0)
            try await stage.sandbox.control([
                "faults": [["endpoint": "token", "kind": "error", "error": "invalid_request", "count": 1]]
            ])
            let second = try await stage.begin()
            let callback = try await Browser.signIn(at: second.authorizationURL)
            #expect(try await Browser.deliver(callback).answer.location == "/failed")
            let requests = try await stage.sandbox.log().filter { $0["endpoint"]?.string == "token" }
            #expect(requests.count == 1, "\(requests)")
            #expect(requests.first?["parameters"]?["code_verifier"] != nil, "\(requests)")
            let third = try await stage.begin()
            for flow in [first, second, third] {
                let url = try LocalURL(flow.authorizationURL)
                #expect(url["code_challenge_method"] == "S256" && url["code_challenge"]?.count == 43, "\(url)")
            }
        }
    }
}
