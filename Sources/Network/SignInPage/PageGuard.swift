// The checks of a request to a sign-in page, beyond those of the listener: is it from the browser that opened the page's
// start address, and, for a form, from the page itself?

internal import Cryptography
public import HTTPMessages
public import Secrets

/// The secrets by which one sign-in's page knows its browser and its own forms.
public struct PageGuard: Sendable {
    public enum Verdict: Sendable {
        /// A page is asked for.
        case page
        /// A form of the page was sent.
        case form(PageForm)
        /// Another browser, or the same one without the cookie.
        case stranger
        /// To be refused with this status.
        case refused(Int)
    }

    private let cookie = RandomToken.base64URL(bits: 256)
    /// Stands in every form.
    public let token = RandomToken.base64URL(bits: 256)

    public init() {}

    /// The value of the field `Set-Cookie` for the browser that opened the start address. `Lax`: the browser comes from
    /// another site, that of the start address. It lasts as long as the browser runs; the page ends before.
    public var cookieField: String { "\(PageGuard.name)=\(cookie.revealed()); Path=/; HttpOnly; SameSite=Lax" }

    /// - Parameter origin: the page's own, without a slash at its end.
    public func judge(_ request: HTTPRequest, at origin: String) -> Verdict {
        // A program on another port of `localhost` may have set a cookie of the same name: any that fits will do.
        guard cookies(of: request.fields).contains(where: { Secret($0) == cookie }) else {
            return request.method == "GET" ? .stranger : .refused(403)
        }
        guard request.method == "POST" else { return .page }
        let origins = request.fields[all: "Origin"]
        // A browser sends its origin with every form; the second field is missing in old browsers only.
        guard origins == [origin], request.fields[all: "Sec-Fetch-Site"].allSatisfy({ $0 == "same-origin" }) else {
            return .refused(403)
        }
        let types = request.fields[all: "Content-Type"]
        guard types.count == 1,
            types[0].prefix(while: { $0 != ";" && $0 != " " }).lowercased() == "application/x-www-form-urlencoded"
        else { return .refused(415) }
        guard let form = try? PageForm(parsing: request.body?.revealedBytes() ?? []) else { return .refused(400) }
        guard form.token == token else { return .refused(403) }
        return .form(form)
    }

    private func cookies(of fields: HTTPFields) -> [String] {
        fields[all: "Cookie"].flatMap { $0.split(separator: ";") }.compactMap { pair in
            let pair = pair.drop { $0 == " " }
            guard pair.hasPrefix("\(PageGuard.name)=") else { return nil }
            return String(pair.dropFirst(PageGuard.name.count + 1))
        }
    }

    private static let name = "ringback"
}
