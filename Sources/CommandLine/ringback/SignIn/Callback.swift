import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// A callback URL that was pasted or that came by a custom scheme. The daemon decides what it means.
enum Callback {
    /// The daemon's own limit for a callback URL, in bytes.
    static let maxLength = 16_384

    static func mistake(_ url: String) -> String? {
        if url.isEmpty { return "There is no URL. Copy it from the browser's address bar after the sign-in." }
        if url.utf8.count > maxLength { return "The URL is longer than \(maxLength) bytes." }
        if url.hasPrefix("-") { return "A URL does not begin with “-”." }
        if url.unicodeScalars.contains(where: { !$0.isVisible || $0 == " " }) {
            return "A URL has no spaces and no control characters."
        }
        return url.contains(":") ? nil : "A URL begins with a scheme, such as http:."
    }

    /// Escapes a link as RFC 3986 section 2 requires. Browsers and desktops pass on braces, bars and letters of every
    /// alphabet as a page has them.
    static func escaped(_ url: String) -> String {
        url.utf8.reduce(into: "") { text, byte in
            if byte < 0x7F, !"\"<>\\^`{|}".utf8.contains(byte) {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
    }

    /// - Parameter wantsNotice: the user looks at the desktop, where the daemon shows a notification. If it cannot, the
    ///   result is also printed on standard error, which desktops log.
    static func deliver(
        _ url: String, _ calls: BrokerCalls, isJSON: Bool, wantsNotice: Bool = false
    ) throws(RingbackError) {
        let body: JSONObject = ["url": url, "notify": wantsNotice ? true : nil]
        let answer = try calls.call(.deliverCallback, body: .object(body), timeout: .seconds(60))
        if isJSON { Output.json(answer) }
        guard let document = answer["flow"] else {
            let isKept = answer["deep_link"]?["heard"]?.bool == false
            let handed = isKept ? "No app listens now; the link is kept for one minute." : "Sent to the app."
            if !isJSON { Output.line(answer["diagnostic_link"] == nil ? handed : "ringback doctor has its link back.") }
            return
        }
        guard let flow = Flow(reading: document) else {
            if !isJSON { Output.line("The sign-in is finished.") }
            return
        }
        if let failure = flow.failure { throw SignInAdvice.elsewhere(failure, of: flow) }
        guard !isJSON || wantsNotice else { return }
        let account = try calls.account(flow.account)
        if !isJSON { flow.showResult(account) }
        let isTold = !wantsNotice || answer.isTrue("notified") || Console.Stream.output.isTerminal
        if !isTold { Output.note(flow.result(account)) }
    }

    /// The accounts whose pending sign-in waits for a callback at this URL without its query.
    static func accounts(awaiting url: String, _ calls: BrokerCalls) throws(RingbackError) -> [String] {
        let candidates = try calls.flows().filter { flow in
            flow.status == .pending && flow.redirectURI.map { place(of: $0) == place(of: url) } == true
        }
        // Several flows may have one redirect URI. The state tells them apart, if the authorization URL has one.
        let own = candidates.filter { flow in
            guard let state = state(in: url) else { return false }
            return flow.authorizationURL.flatMap { self.state(in: $0) } == state
        }
        return (own.isEmpty ? candidates : own).map(\.account)
    }

    private static func state(in url: String) -> Substring? {
        url.drop { $0 != "?" }.dropFirst().prefix { $0 != "#" }.split(separator: "&")
            .first { $0.hasPrefix("state=") }?.dropFirst("state=".count)
    }

    static func place(of url: String) -> Substring { url.prefix { $0 != "?" && $0 != "#" } }

    /// Without spaces and line ends, which copied text often has.
    static func trimmed(_ text: String) -> String {
        String(text.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
    }
}

extension Flow {
    /// What has become of an account by a flow that has ended, or has gone one step on.
    func result(_ document: JSON) -> String {
        if status == .pending { return Sanitizer.line(userMessage ?? "Another confirmation is awaited.") }
        guard method == .userUpdate else { return SignInRun.result(account, document) }
        let user = User(reading: document["user"])
        return "Confirmed: \(Sanitizer.line(account)) is \(Sanitizer.line(user?.email ?? user?.phone ?? "as it was"))"
    }

    func showResult(_ document: JSON) {
        Output.line(result(document))
        if let hint = Assurance.hint(account, document) { Output.note(hint) }
        if method == .recovery { Output.note(SupabaseResetPassword.later(account)) }
    }
}
