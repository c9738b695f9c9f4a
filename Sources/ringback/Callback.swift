import RingbackClient
import StrictJSON
import Terminal

/// A callback that came by hand or by a scheme: handed to the daemon, which alone knows what it means.
enum Callback {
    /// The daemon's own bound on a callback (CONTRACT section 6).
    static let maxLength = 16_384

    /// Why a text cannot be a callback; nil if it can.
    static func mistake(_ url: String) -> String? {
        if url.utf8.count > maxLength { return "The URL is longer than \(maxLength) bytes." }
        if url.hasPrefix("-") { return "A URL does not begin with “-”." }
        if url.unicodeScalars.contains(where: { !Sanitizer.isVisible($0) || $0 == " " }) {
            return "A URL has no spaces and no control characters."
        }
        return url.contains(":") ? nil : "A URL begins with a scheme, such as http:."
    }

    /// Delivers it and says what came of it.
    static func deliver(_ url: String, _ calls: BrokerCalls, isJSON: Bool) throws(RingbackError) {
        let answer = try calls.call("POST", "/v1/callbacks", body: ["url": .string(url)], timeout: .seconds(60))
        if isJSON { Output.json(answer) }
        guard let document = answer["flow"] else {
            if !isJSON { Output.line("Handed over to the app that waits for it.") }
            return
        }
        guard let flow = Flow(reading: document) else {
            if !isJSON { Output.line("The sign-in is finished.") }
            return
        }
        if let failure = flow.failure { throw failure }
        if !isJSON { Output.line(SignInRun.result(flow.account, try calls.account(flow.account))) }
    }

    /// The accounts whose pending sign-in waits for a callback at the URL's place.
    static func accounts(awaiting url: String, _ calls: BrokerCalls) throws(RingbackError) -> [String] {
        let flows = try calls.call("GET", "/v1/flows")["flows"]?.array?.compactMap { Flow(reading: $0) } ?? []
        return flows.filter { flow in
            flow.status == .pending && flow.redirectURI.map { place(of: $0) == place(of: url) } == true
        }.map(\.account)
    }

    private static func place(of url: String) -> Substring { url.prefix { $0 != "?" && $0 != "#" } }
}
