import RingbackBase
import Testing

@Suite struct `An answer that the browser posts` {
    private let configuration = """
        [accounts.work]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email", "offline_access"]
        response_mode = "form_post"

        """

    /// What is behind each mark, up to the next quotation mark.
    private func texts(behind mark: String, in page: Answer) -> [String] {
        page.text.split(separator: mark, omittingEmptySubsequences: false).dropFirst().map { rest in
            String(rest.prefix { $0 != "\"" })
        }
    }

    @Test func `a form_post response completes the sign-in without a code in the address`() async throws {
        try await Stage.play(configuration) { stage in
            let flow = try await stage.begin()
            #expect(flow.authorizationURL.contains("response_mode=form_post"))
            let url = try LocalURL(flow.authorizationURL)
            let page = try await Browser.load(url)
            let interaction = try #require(texts(behind: "name=\"interaction\" value=\"", in: page).first)
            let place = try url.following(try #require(texts(behind: "action=\"", in: page).first))
            let form = try await Browser.load(place, form: "interaction=\(interaction)&user=alice&decision=allow")
            let action = try LocalURL(try #require(texts(behind: "action=\"", in: form).first))
            #expect(action.text == flow.redirectURI)
            let names = texts(behind: "<input type=\"hidden\" name=\"", in: form)
            #expect(names.sorted() == ["code", "iss", "state"], "\(form)")
            let body = FormEncoding.encode(Array(zip(names, texts(behind: " value=\"", in: form))))
            // As the browser sends it: a form of another site.
            let answer = try await Browser.load(action, form: body, fields: Browser.navigation + [("Origin", "null")])
            #expect(answer.status == 303 && answer.location == "/done", "\(answer)")
            #expect(try await Browser.load(action.following(answer.location ?? "")).status == 200)
            #expect(try await stage.ended(flow)["status"]?.string == "completed")
            #expect(try await stage.token() != nil)
            #expect(try await stage.account()["subject"]?.string == "alice")
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
        }
    }
}
