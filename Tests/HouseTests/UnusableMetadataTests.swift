import RingbackBase
import Testing

extension `A provider with habits of its own` {
    struct Refusal: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let perturbation: String?
        let line: String
        /// Of `account add`; nil for a setting that it has no option for.
        let options: [String]?
        let words: String
        let advice: String

        static let all = [
            Refusal(
                testDescription: "form_post that is not offered", perturbation: "metadata_no_response_modes",
                line: "response_mode = \"form_post\"", options: ["--response-mode", "form_post"],
                words: "response_mode = \"form_post\" cannot be used", advice: "Look at --response-mode."),
            Refusal(
                testDescription: "ID tokens that no published key verifies", perturbation: "metadata_only_hs256",
                line: "", options: [], words: "the provider signs ID tokens with HS256", advice: "Look at --scope."),
            Refusal(
                testDescription: "pushed requests without an endpoint", perturbation: nil,
                line: "pushed_authorization_requests = \"required\"", options: nil,
                words: "requires pushed authorization requests", advice: ""),
            Refusal(
                testDescription: "tokens that the provider binds to no key", perturbation: nil,
                line: "dpop = \"required\"", options: ["--dpop", "required"],
                words: "do not offer to bind tokens to a key", advice: "Look at --dpop."),
        ]
    }

    @Test(arguments: Refusal.all)
    func `metadata with which an account cannot sign in are found by account add, the sign-in and the doctor`(
        refusal: Refusal
    ) async throws {
        let configuration = "[accounts.work]\nissuer = \"{sandbox}\"\nclient_id = \"ringback-demo\"\n\(refusal.line)\n"
        try await Stage.play(configuration) { stage in
            if let perturbation = refusal.perturbation {
                try await stage.sandbox.control(["perturb": [.string(perturbation)]])
            }
            if let options = refusal.options {
                let add = ["account", "add", "play", "--issuer", stage.sandbox.origin, "--client-id", "ringback-demo"]
                try await stage.run("ringback", add + options, status: 78, out: "", says: refusal.words, refusal.advice)
                #expect(FileTree.names(in: stage.dropIns) == [])
            }
            try await stage.ringback(
                "login", "work", "--no-browser", status: 78, out: "", says: refusal.words, "Run: ringback doctor work")
            let doctor = try await stage.ringback("doctor", "work", "--json", environment: ["DISPLAY": ":99"])
            let wrong = try doctor.json["checks"]?.array?.filter { $0["level"] == "wrong" } ?? []
            #expect(doctor.status == 1 && wrong.map { $0["check"] } == ["metadata"], "\(doctor)")
            #expect(wrong.first?["message"]?.string?.contains(refusal.words) == true, "\(doctor)")
            #expect(wrong.first?["command"] == "ringback account edit work", "\(doctor)")
        }
    }

    @Test func `unusable members of the metadata stop neither refreshes nor the sign-out`() async throws {
        try await Stage.playSignedIn { stage in
            try await stage.stopDaemon()
            let before = try await stage.sandbox.counters()
            try await stage.sandbox.control(["perturb": ["metadata_unusable_members", "metadata_no_s256"]])
            try await stage.startDaemon()
            try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true], status: 200)
            #expect(try await stage.sandbox.counters().requests("discovery") > before.requests("discovery"))
            let doctor = try await stage.ringback("doctor", "work")
            for member in [
                "registration_endpoint", "end_session_endpoint", "userinfo_endpoint", "device_authorization_endpoint",
                "pushed_authorization_request_endpoint", "scopes_supported",
            ] {
                #expect(doctor.out.contains(member), "\(member): \(doctor)")
            }
            try await stage.ringback("logout", "work", status: 0)
            let revocations = try await stage.sandbox.log().filter { $0["endpoint"] == "revocation" }
            #expect(!revocations.isEmpty && revocations.allSatisfy { $0["status"]?.integer == 200 }, "\(revocations)")
            #expect(try await stage.account()["state"] == "unauthenticated")
        }
    }
}
