// An HTTP answer, taken apart, for tests that look at every part of it.

import StrictJSON

struct Answer: Sendable, CustomStringConvertible {
    /// 0 if nothing came before the connection was closed.
    let status: Int
    /// Names in lower case.
    let fields: [String: String]
    let body: [UInt8]

    var text: String { String(decoding: body, as: UTF8.self) }
    /// `null` if the body is no JSON.
    var json: JSON { (try? JSON(parsing: body)) ?? .null }
    /// Of a problem document.
    var code: String? { json["code"]?.string }
    var isProblem: Bool { fields["content-type"] == "application/problem+json" }
    /// Without an empty fragment, which only keeps the browser from handing its own on.
    var location: String? { fields["location"].map { $0.hasSuffix("#") ? String($0.dropLast()) : $0 } }

    subscript(name: String) -> JSON? { json[name] }

    var description: String { "\(status) \(fields) \(text)" }

    static let nothing = Answer(status: 0, fields: [:], body: [])
}

/// The head of an answer.
struct AnswerHead: Sendable {
    let status: Int
    let fields: [String: String]

    init(_ text: String) {
        let lines = text.split(separator: "\r\n")
        status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            fields[line[..<colon].lowercased()] = String(line[line.index(after: colon)...].drop { $0 == " " })
        }
        self.fields = fields
    }
}
