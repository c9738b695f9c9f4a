/// What a person and a browser do in a sign-in, one request at a time, with the fields that browsers send.
struct Browser: Sendable {
    /// The environment of a program whose browser is curl: it follows the redirects of a provider that approves by itself.
    static let environment = ["BROWSER": "curl -sSL -o /dev/null"]

    /// The fields of a navigation: what a page cannot make a browser say otherwise.
    static let navigation = [
        ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document"), ("Sec-Fetch-Site", "cross-site"),
        ("Accept", "text/html"), ("User-Agent", "a browser of the house tests"),
    ]

    static func load(
        _ url: LocalURL, form: String? = nil, fields: [(String, String)] = navigation,
        within bound: Duration = Bound.usual
    ) async throws -> Answer {
        var head = "\(form == nil ? "GET" : "POST") \(url.target) HTTP/1.1\r\nHost: \(url.authority)\r\n"
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        if let form {
            head += "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: \(form.utf8.count)\r\n"
        }
        let connection = try Connection(to: url.place)
        await connection.send(head + "Connection: close\r\n\r\n" + (form ?? ""))
        return try await connection.answer(within: bound)
    }

    /// Opens a flow's page and answers its form. Gives the callback URL, which nobody has followed yet.
    static func signIn(at authorizationURL: String, as user: String = "alice") async throws -> LocalURL {
        try LocalURL(await location(after: "user=\(user)&decision=allow", at: authorizationURL))
    }

    static func deny(at authorizationURL: String) async throws -> LocalURL {
        try LocalURL(await location(after: "user=alice&decision=deny", at: authorizationURL))
    }

    /// Where the provider sends the browser: of any scheme.
    static func location(after decision: String, at authorizationURL: String) async throws -> String {
        var url = try LocalURL(authorizationURL)
        var page = try await load(url)
        if url.path.hasPrefix("/start/"), page.status == 303, let location = page.location {
            url = try LocalURL(location)
            page = try await load(url)
        }
        if let location = page.location { return location }
        guard page.status == 200, let action = value(of: "action", in: page.text),
            let interaction = page.text.split(separator: "name=\"interaction\" value=\"", maxSplits: 1).dropFirst()
                .first
        else { throw Late(what: "a sign-in page, not \(page)") }
        let form = "interaction=\(interaction.prefix { $0 != "\"" })&\(decision)"
        let answer = try await load(url.following(action), form: form)
        guard let location = answer.location else { throw Late(what: "a redirect, not \(answer)") }
        return location
    }

    /// Follows a callback as a browser does. Gives the listener's answer and, after a 303, the page behind it.
    static func deliver(_ callback: LocalURL) async throws -> (answer: Answer, page: Answer?) {
        let answer = try await load(callback)
        guard let destination = answer.destination else { return (answer, nil) }
        return (answer, try await load(callback.following(destination)))
    }

    private static func value(of attribute: String, in html: String) -> String? {
        let parts = html.split(separator: "\(attribute)=\"", maxSplits: 1)
        return parts.count == 2 ? parts[1].split(separator: "\"").first.map(String.init) : nil
    }
}
