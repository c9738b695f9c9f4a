import RingbackBase
import Testing

private struct PostedAnswer: Sendable {
    let action: LocalURL
    let pairs: [(name: String, value: String)]

    /// Opens a flow's page and answers it; what comes is a page with a form for the listener.
    init(at authorizationURL: String, decision: String = "user=alice&decision=allow") async throws {
        let url = try LocalURL(authorizationURL)
        let page = try await Browser.load(url)
        let interaction = try PostedAnswer.value(after: "name=\"interaction\" value=\"", in: page.text)
        let action = try PostedAnswer.value(after: "action=\"", in: page.text)
        let answer = try await Browser.load(
            url.following(action), form: "interaction=\(interaction)&\(decision)")
        guard answer.status == 200 else { throw Late(what: "a page with a form, not \(answer)") }
        self.action = try LocalURL(PostedAnswer.value(after: "action=\"", in: answer.text))
        pairs = try answer.text.split(separator: "<input type=\"hidden\" ").dropFirst().map { input in
            let text = String(input)
            return (
                try PostedAnswer.value(after: "name=\"", in: text), try PostedAnswer.value(after: "value=\"", in: text)
            )
        }
    }

    private static func value(after mark: String, in text: String) throws -> String {
        let parts = text.split(separator: mark, maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { throw Late(what: "\(mark) in \(text)") }
        return String(parts[1].prefix { $0 != "\"" })
    }

    var body: String {
        pairs.map { "\($0.name)=\(PostedAnswer.escape($0.value))" }.joined(separator: "&")
    }

    private static func escape(_ text: String) -> String {
        text.utf8.reduce(into: "") { escaped, byte in
            let isPlain = (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A) || (byte >= 0x30 && byte <= 0x39)
            let digits = String(byte, radix: 16, uppercase: true)
            escaped +=
                isPlain || "-._".utf8.contains(byte)
                ? String(Unicode.Scalar(byte)) : "%" + (digits.count < 2 ? "0" : "") + digits
        }
    }

    /// As the browser sends it: a form of another site.
    func post(_ body: String? = nil) async throws -> (answer: Answer, page: Answer?) {
        let fields = Browser.navigation + [("Origin", "null")]
        let answer = try await Browser.load(action, form: body ?? self.body, fields: fields)
        guard let location = answer.location else { return (answer, nil) }
        return (answer, try await Browser.load(action.following(location)))
    }
}

@Suite struct `An answer that the browser posts` {
    private let configuration = """
        [accounts.work]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email", "offline_access"]
        response_mode = "form_post"

        """

    @Test func `a form_post response completes the sign-in without a code in the address`() async throws {
        try await Stage.play(configuration) { stage in
            let flow = try await stage.begin()
            #expect(flow.authorizationURL.contains("response_mode=form_post"))
            let posted = try await PostedAnswer(at: flow.authorizationURL)
            #expect(posted.action.text == flow.redirectURI)
            #expect(posted.pairs.map(\.name).sorted() == ["code", "iss", "state"])
            let (answer, page) = try await posted.post()
            #expect(answer.status == 303 && answer.location == "/done", "\(answer)")
            #expect(page?.status == 200, "\(page?.description ?? "no page")")
            #expect(try await stage.ended(flow)["status"]?.string == "completed")
            #expect(try await stage.token() != nil)
            #expect(try await stage.account()["subject"]?.string == "alice")
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
        }
    }
}
