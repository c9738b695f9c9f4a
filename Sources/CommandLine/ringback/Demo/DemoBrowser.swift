import RingbackClient

/// What a browser does in a sign-in: it loads pages on loopback and follows redirects one by one.
struct DemoBrowser {
    /// A response, as far as a browser needs it.
    struct Page {
        let url: LoopbackURL
        let head: HTTPExchange.Head
        let text: String

        var status: Int { head.status }
        /// Where the response redirects the browser.
        var destination: LoopbackURL? { head.field("location").flatMap { url.following($0) } }
    }

    let interruption: Interruption

    /// Loads a page.
    func load(_ url: LoopbackURL, token: String? = nil) throws(RingbackError) -> Page {
        let connection = try SocketConnection(
            loopbackPort: url.port, isIPv6: url.isIPv6, deadline: .now + .seconds(30), interruption: interruption)
        let exchange = HTTPExchange(connection)
        var fields = [
            HeaderField("Host", url.authority), HeaderField("User-Agent", "ringback-demo"),
            HeaderField("Accept", "text/html, application/json"), HeaderField("Connection", "close"),
        ]
        if let token {
            fields.append(HeaderField("Authorization", "Bearer \(token)"))
        } else {
            // The headers that every browser sends when a user navigates to a page.
            fields += [
                HeaderField("Sec-Fetch-Mode", "navigate"), HeaderField("Sec-Fetch-Dest", "document"),
                HeaderField("Sec-Fetch-Site", "cross-site"),
            ]
        }
        try exchange.send("GET", url.target, fields: fields, body: nil)
        let head = try exchange.readHead()
        return Page(url: url, head: head, text: String(decoding: try exchange.readBody(limit: 1 << 20), as: UTF8.self))
    }
}
