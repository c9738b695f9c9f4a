// A message is sent again when the project's minute is over, for each kind of message, by the request that its kind
// wants. The minute is the daemon's own: it is waited for once, by a question that is held for as long.

import RingbackBase
import Testing

@Suite struct `A message that did not come` {
    /// Accounts at the same project, each with a message under way; what is asked again for it.
    private static let accounts = ["mail", "number", "start", "forgotten", "address", "phone"]

    private static func configuration() -> String {
        accounts.map { name in
            """
            [accounts.\(name)]
            provider = "supabase"
            url = "{sandbox}/supabase"
            api_key = "sb_publishable_sandbox"

            """
        }.joined()
    }

    private func begin(_ stage: Stage, _ account: String, _ path: String, _ body: JSON) async throws -> String {
        let method = path == "user" ? "PATCH" : "POST"
        let answer = try await stage.api(method, "/v1/accounts/\(account)/\(path)", body)
        let flow = answer["flow"] ?? answer.json
        #expect(flow["waiting_for"] != nil && flow["resend_after"]?.integer != nil, "\(answer)")
        return flow["id"]?.string ?? ""
    }

    @Test func `ringback resend repeats each kind of message after a minute`() async throws {
        try await Stage.play(Self.configuration()) { stage in
            let settings: JSON = ["configuration": "B", "mail_interval": 0, "sms_interval": 0]
            try await stage.setProject(settings)
            let person: JSON = ["email": "mira@example.org", "password": "secret12"]
            try await stage.setProject(["users": [person], "phone_autoconfirm": true])
            for (name, method, contact) in [
                ("address", "password", ["--email", "mira@example.org"]),
                ("phone", "sign_up", ["--phone", "+4915100000001"]),
            ] {
                let login = try await stage.run(
                    "ringback", ["login", name, "--method", method] + contact, stdin: "secret12\n")
                #expect(login.status == 0, "\(login)")
            }
            try await stage.setProject(["phone_autoconfirm": false])
            let mail = try await begin(
                stage, "mail", "sign-in", ["method": "magic_link", "email": "a@example.org"])
            _ = try await begin(stage, "number", "sign-in", ["method": "otp", "phone": "+4915100000002"])
            let start = try await begin(
                stage, "start", "sign-in", ["method": "sign_up", "email": "b@example.org", "password": "secret12"])
            let forgotten = try await begin(stage, "forgotten", "password-reset", ["email": "mira@example.org"])
            let address = try await begin(stage, "address", "user", ["email": "new@example.org"])
            let last = try await begin(stage, "phone", "user", ["phone": "+4915100000003"])

            let older = try await letters(stage)
            let early = try await stage.ringback("resend", "mail")
            #expect(early.status == 5, "\(early)")
            // Whose minute it is, since the project's own may be longer.
            #expect(early.err.contains("Ringback itself waits 60 seconds"), "\(early)")
            #expect(early.err.contains("wait a minute") && !early.err.contains("few minutes"), "\(early)")
            let waited = try await stage.api("GET", "/v1/flows/\(last)?wait=61", within: Bound.seconds(120))
            #expect(waited["status"] == "pending", "\(waited)")
            for (account, row) in Self.rows {
                try await stage.expect([row], of: account) {
                    let again = try await stage.ringback("resend", account)
                    #expect(again.status == 0, "\(again)")
                }
            }
            let newer = try await letters(stage).filter { letter in !older.contains(letter) }
            for (flow, address) in [
                (mail, "a@example.org"), (start, "b@example.org"), (forgotten, "mira@example.org"),
                (address, "new@example.org"),
            ] {
                try await open(older, of: address, of: flow, stage, leaving: "pending")
                try await open(newer, of: address, of: flow, stage, leaving: "completed")
            }
        }
    }

    private func letters(_ stage: Stage) async throws -> [JSON] {
        try await stage.sandbox.request("GET", "/supabase/sandbox/mailbox").json["letters"]?.array ?? []
    }

    /// Follows the links of the mails of a flow, as their reader's browser does.
    private func open(
        _ letters: [JSON], of address: String, of flow: String, _ stage: Stage, leaving status: String
    ) async throws {
        // A secure change of the address is confirmed at both addresses.
        let type = address == "new@example.org" ? "email_change" : address == "mira@example.org" ? "recovery" : nil
        let own = letters.filter { letter in
            type == nil || letter["type"]?.string == type
        }.filter { letter in letter["to"]?.string == address || type == "email_change" }
        #expect(!own.isEmpty, "\(letters)")
        for letter in own {
            let link = try #require(letter["link"]?.string)
            let page = try await stage.run("/usr/bin/curl", ["-sSL", link])
            #expect(page.status == 0, "\(page)")
        }
        let now = try await stage.api("GET", "/v1/flows/\(flow)?wait=\(status == "pending" ? 0 : 20)")
        #expect(now["status"]?.string == status, "\(address): \(now)")
    }

    private static let rows: [(String, Wire)] = [
        ("mail", Wire("POST otp", body: ["email": "a@example.org", "create_user": true], link: true)),
        ("number", Wire("POST otp", body: ["phone": "4915100000002", "create_user": true])),
        ("start", Wire("POST resend", body: ["type": "signup", "email": "b@example.org"], link: true)),
        ("forgotten", Wire("POST recover", body: ["email": "mira@example.org"], link: true)),
        ("address", Wire("POST resend", body: ["type": "email_change", "email": "mira@example.org"], link: true)),
        ("phone", Wire("POST resend", body: ["type": "phone_change", "phone": "4915100000001"])),
    ]
}
