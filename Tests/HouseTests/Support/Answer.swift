import RingbackBase

/// An HTTP answer, taken apart, for tests that look at every part of it.
struct Answer: Sendable, CustomStringConvertible {
    /// 0 if nothing came before the connection was closed.
    let status: Int
    /// Names in lower case.
    let fields: [String: String]
    let body: [UInt8]

    var text: String { String(decoding: body, as: UTF8.self) }
    var style: String? {
        let parts = text.split(separator: "<style>", maxSplits: 1)
        guard parts.count == 2, let end = parts[1].firstRange(of: "</style>") else { return nil }
        return String(parts[1][..<end.lowerBound])
    }
    /// `null` if the body is no JSON.
    var json: JSON { (try? JSON(parsing: body)) ?? .null }
    var code: String? { json["code"]?.string }
    var isProblem: Bool { fields["content-type"] == "application/problem+json" }
    /// Where it sends the browser: without an empty fragment, which only keeps the browser from handing its own on.
    var destination: String? { fields["location"].map { $0.hasSuffix("#") ? String($0.dropLast()) : $0 } }
    /// The same, without the key at the end of the address of a result's page.
    var location: String? {
        guard let destination, destination.hasPrefix("/"), let slash = destination.dropFirst().firstIndex(of: "/")
        else {
            return destination
        }
        let page = String(destination[..<slash])
        return ["/done", "/failed", "/noted", "/older"].contains(page) ? page : destination
    }

    subscript(name: String) -> JSON? { json[name] }

    var description: String { "\(status) \(fields) \(text)" }

    static let nothing = Answer(status: 0, fields: [:], body: [])
}
