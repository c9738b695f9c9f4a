import StrictJSON
import Testing

extension `A provider with habits of its own` {
    /// Metadata with which an account cannot sign in.
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
                let added = try await stage.run("ringback", add + options)
                #expect(added.status == 78 && added.out.isEmpty, "\(added)")
                #expect(added.err.contains(refusal.words) && added.err.contains(refusal.advice), "\(added)")
                #expect(FileTree.names(in: stage.dropIns) == [])
            }
            let login = try await stage.ringback("login", "work", "--no-browser")
            #expect(login.status == 78 && login.out.isEmpty && login.err.contains(refusal.words), "\(login)")
            #expect(login.err.contains("Run: ringback doctor work"), "\(login)")
            let doctor = try await stage.run(
                "ringback", ["doctor", "work", "--json"], environment: ["DISPLAY": ":99"])
            let wrong = try JSON(parsing: doctor.out.utf8)["checks"]?.array?.filter { $0["level"] == "wrong" } ?? []
            #expect(doctor.status == 1 && wrong.map { $0["check"] } == ["metadata"], "\(doctor)")
            #expect(wrong.first?["message"]?.string?.contains(refusal.words) == true, "\(doctor)")
            #expect(wrong.first?["command"] == "ringback account edit work", "\(doctor)")
        }
    }
}
