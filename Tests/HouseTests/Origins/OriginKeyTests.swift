import RingbackBase
import Testing

@Suite struct `The keys of an origin` {
    @Test func `audience, resource and scope are asked of the provider, once each`() async throws {
        let origins = [("audience", "api"), ("resource", "urn:api"), ("scope", "read")].map { key, value in
            "[[origin]]\nurl = \"https://\(key).example.org/*\"\naccount = \"build\"\n\(key) = \"\(value)\"\n"
        }
        let account = "grant = \"client_credentials\"\nscopes = [\"deploy\", \"read\"]\n"
        try await Stage.playService(account + origins.joined()) { stage in
            var tokens: Set<String> = []
            for key in ["audience", "resource", "scope"] {
                let input = "protocol=https\nhost=\(key).example.org\n\n"
                let first = try await stage.ringback(
                    "git-credential", "get", stdin: input, status: 0, prints: "password=at-")
                let second = try await stage.ringback("git-credential", "get", stdin: input)
                let printed = try await stage.ringback("token", "--origin", "https://\(key).example.org/x")
                #expect(second.out == first.out && first.out.contains("password=\(printed.out)"), "\(printed)")
                tokens.insert(printed.out)
            }
            let forms = try await stage.tokenForms()
            let said = forms.map { form in
                ["audience", "resource", "scope"].map { form[$0]?.string ?? "-" }.joined(separator: " ")
            }
            #expect(said == ["api - deploy read", "- urn:api deploy read", "- - read"], "\(said)")
            #expect(tokens.count == 3)
        }
    }

    @Test func `match_username tells two accounts at one server apart`() async throws {
        let origins = ["work", "home"].map { name in
            "[[origin]]\nurl = \"https://git.example.org/*\"\naccount = \"\(name)\"\nmatch_username = \"\(name)-ada\"\n"
        }
        try await Stage.play(Stage.twoAccounts + origins.joined()) { stage in
            try await stage.signIn()
            try await stage.signIn("home", as: "bob")
            for name in ["work", "home"] {
                let token = try #require(try await stage.token(name))
                let input = "protocol=https\nhost=git.example.org\nusername=\(name)-ada\n\n"
                let answer = try await stage.ringback("git-credential", "get", stdin: input)
                #expect(answer.lines.contains("username=\(name)-ada"), "\(answer)")
                #expect(answer.lines.contains("password=\(token)"), "\(answer)")
                let printed = try await stage.ringback(
                    "token", "--origin", "https://git.example.org", "--username", "\(name)-ada")
                #expect(printed.out == token + "\n", "\(printed)")
            }
            for name in ["", "username=other\n"] {
                let input = "protocol=https\nhost=git.example.org\n\(name)\n"
                let nothing = try await stage.ringback("git-credential", "get", stdin: input, status: 0, out: "")
                #expect(nothing.err.isEmpty, "\(nothing)")
            }
        }
    }

    @Test func `a header with the project's api_key is given to tools that send several fields`() async throws {
        let origin = """
            [[origin]]
            url = "https://project.example.org/rest/*"
            account = "app"
            header = ["apikey: {api_key}", "Authorization: Bearer {token}"]

            """
        try await Stage.playProject(["autoconfirm": true], configuration: Stage.project + origin) { stage in
            try await stage.signUp()
            let token = try #require(try await stage.token("app"))
            let url = "https://project.example.org/rest/v1/rows"
            let printed = try await stage.ringback("token", "--origin", url, "--format", "header")
            #expect(printed.out == "apikey: sb_publishable_sandbox\nAuthorization: Bearer \(token)\n", "\(printed)")
            let fields = try await stage.ringback("bazel-credential", "get", stdin: "{\"uri\":\"\(url)\"}")
            let headers = try fields.json["headers"]
            #expect(
                headers == ["apikey": ["sb_publishable_sandbox"], "Authorization": [.string("Bearer \(token)")]],
                "\(fields)")
        }
    }
}
