import RingbackBase
import Testing

/// A browser on Ringback's own sign-in page: one cookie, one page, one request at a time.
struct PageBrowser: Sendable {
    /// The page's address, `http://rb-….localhost:PORT/`.
    let address: LocalURL
    var cookie: String
    var answer: Answer

    var origin: String { "http://\(address.authority)" }

    static func begin(_ stage: Stage) async throws -> (browser: PageBrowser, flow: JSON) {
        let flow = try await stage.api("POST", "/v1/accounts/app/sign-in", ["method": "page"])
        guard flow.status == 201, let start = flow["open_url"]?.string else { throw Late(what: "a page, not \(flow)") }
        return (try await PageBrowser(opening: start), flow.json)
    }

    init(opening start: String) async throws {
        let first = try await Browser.load(LocalURL(start))
        guard first.status == 303, let entry = first.location else { throw Late(what: "a way in, not \(first)") }
        try await self.init(entering: entry)
    }

    /// Opens an address that lets one browser in.
    init(entering entry: String) async throws {
        let entered = try await Browser.load(LocalURL(entry))
        guard entered.status == 303, let field = entered.fields["set-cookie"] else {
            throw Late(what: "a cookie, not \(entered)")
        }
        address = try LocalURL(entry).following("/")
        cookie = String(field.prefix { $0 != ";" })
        answer = entered
        try await load("/")
    }

    /// Loads a page and follows where it leads on the page itself.
    mutating func load(_ path: String) async throws {
        answer = try await get(path)
        for _ in 0..<100 {
            guard answer.status == 303, let next = answer.destination, next.hasPrefix("/") else { break }
            answer = try await get(next)
            // While the project is asked, the page loads itself again.
            if answer.fields["refresh"] == "1" { answer = try await get(next) }
        }
    }

    func get(_ path: String, _ fields: [(String, String)]? = nil) async throws -> Answer {
        try await Browser.load(
            address.following(path), fields: fields ?? Browser.navigation + [("Cookie", cookie)])
    }

    mutating func send(_ action: String, _ values: [(String, String)] = []) async throws {
        answer = try await post(form(action, values))
        guard answer.status == 303, let next = answer.destination else { throw Late(what: "a redirect, not \(answer)") }
        try await load(next)
    }

    func form(_ action: String, _ values: [(String, String)] = [], token: String? = nil) -> String {
        let pairs = [("action", action), ("token", token ?? self.token ?? "")] + values
        return pairs.map { "\($0.0)=\(PageBrowser.escaped($0.1))" }.joined(separator: "&")
    }

    /// The fields of a form that the page itself sends.
    var own: [(String, String)] {
        [
            ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document"), ("Sec-Fetch-Site", "same-origin"),
            ("Origin", origin), ("Cookie", cookie),
        ]
    }

    func post(_ form: String, _ fields: [(String, String)]? = nil) async throws -> Answer {
        try await Browser.load(address, form: form, fields: fields ?? own)
    }

    /// The token of the forms on the page.
    var token: String? { value(after: "name=\"token\" value=\"") }
    var heading: String? { value(after: "<h1>").map { String($0.prefix { $0 != "<" }) } }

    /// What follows a text on the page, up to the next quotation mark.
    func value(after text: String) -> String? {
        let parts = answer.text.split(separator: text, maxSplits: 1)
        return parts.count == 2 ? parts[1].split(separator: "\"").first.map(String.init) : nil
    }

    private static func escaped(_ text: String) -> String {
        text.utf8.map { byte in
            let isPlain = (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
            let hex = String(byte, radix: 16, uppercase: true)
            return isPlain ? String(UnicodeScalar(byte)) : "%" + (hex.count == 1 ? "0" : "") + hex
        }.joined()
    }
}
