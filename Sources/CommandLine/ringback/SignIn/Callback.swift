import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// A callback URL that was pasted or that came by a custom scheme. It is passed to the daemon, which decides what it
/// means.
enum Callback {
    /// The daemon's own limit for a callback URL, in bytes.
    static let maxLength = 16_384

    /// Why a text cannot be a callback; nil if it can.
    static func mistake(_ url: String) -> String? {
        if url.isEmpty { return "There is no URL. Copy it from the browser's address bar after the sign-in." }
        if url.utf8.count > maxLength { return "The URL is longer than \(maxLength) bytes." }
        if url.hasPrefix("-") { return "A URL does not begin with “-”." }
        if url.unicodeScalars.contains(where: { !Sanitizer.isVisible($0) || $0 == " " }) {
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

    /// Delivers it and prints the result.
    ///
    /// - Parameter wantsNotice: the user looks at the desktop and not at a terminal. The daemon shows a notification.
    ///   If it cannot, the result is also printed on standard error, which desktops log.
    static func deliver(
        _ url: String, _ calls: BrokerCalls, isJSON: Bool, wantsNotice: Bool = false
    ) throws(RingbackError) {
        var body = JSONObject([.init("url", .string(url))])
        if wantsNotice { body["notify"] = true }
        let answer = try calls.call(.deliverCallback, body: .object(body), timeout: .seconds(60))
        if isJSON { Output.json(answer) }
        guard let document = answer["flow"] else {
            if !isJSON {
                let isKept = answer["deep_link"]?["heard"]?.bool == false
                let handed = isKept ? "No app listens now; the link is kept for one minute." : "Sent to the app."
                Output.line(answer["diagnostic_link"] == nil ? handed : "ringback doctor has its link back.")
            }
            return
        }
        guard let flow = Flow(reading: document) else {
            if !isJSON { Output.line("The sign-in is finished.") }
            return
        }
        if let failure = flow.failure { throw SignInAdvice.elsewhere(failure, of: flow) }
        guard !isJSON || wantsNotice else { return }
        let account = try calls.account(flow.account)
        let isChange = flow.method == .userUpdate
        let result =
            if flow.status == .pending { Sanitizer.line(flow.userMessage ?? "Another confirmation is awaited.") } else {
                isChange ? Verify.confirmed(flow.account, account) : SignInRun.result(flow.account, account)
            }
        if !isJSON {
            Output.line(result)
            if let hint = Assurance.hint(flow.account, account) { Output.note(hint) }
            if flow.method == .recovery { Output.note(SupabaseResetPassword.later(flow.account)) }
        }
        let isTold = !wantsNotice || answer["notified"]?.bool == true || Console.Stream.output.isTerminal
        if !isTold { Output.note(result) }
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

    /// A URL without its query and fragment.
    static func place(of url: String) -> Substring { url.prefix { $0 != "?" && $0 != "#" } }

    /// Removes spaces and line ends, which copied text often has.
    static func trimmed(_ text: String) -> String {
        String(text.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
    }
}
