import FoundationEssentials
import RingbackBase
import Testing

/// A case of Tests/Vectors/supabase: a JSON file.
struct SupabaseVector: Sendable, CustomTestStringConvertible {
    let name: String
    let document: JSON

    var testDescription: String { name }

    subscript(member: String) -> JSON? { document[member] }

    static func all(in folder: String) -> [SupabaseVector] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path(folder).path())) ?? []
        return names.filter { $0.hasSuffix(".json") }.sorted().map { name in
            let bytes = (try? Data(contentsOf: path("\(folder)/\(name)"))) ?? Data()
            return SupabaseVector(name: name, document: (try? JSON(parsing: Array(bytes))) ?? .null)
        }
    }

    /// The lines of a table: `|` between its columns, `#` before remarks.
    static func rows(of table: String) -> [[String]] {
        let text = (try? Data(contentsOf: path(table))).map { String(decoding: $0, as: UTF8.self) } ?? ""
        return text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
            line.split(separator: "|", omittingEmptySubsequences: false).map { column in
                String(column.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
            }
        }
    }

    private static func path(_ name: String) -> URL {
        URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Vectors/supabase/\(name)")
    }

    /// The answer that a case holds: `status`, `headers`, and `body` as JSON or `text` as it came.
    var response: HTTPResponse {
        let headers = self["headers"]?.object?.members.map { ($0.name, $0.value.string ?? "") } ?? []
        let body = self["body"].map { Secret(bytes: $0.serialized()) } ?? Secret(self["text"]?.string ?? "")
        let truncation: HTTPClientError? = self["cut"] == true ? .malformed(host: "ref.supabase.co") : nil
        return HTTPResponse(
            status: self["status"]?.integer ?? 0, fields: HTTPFields(headers), body: body, truncation: truncation)
    }
}

struct Unexpected: Error {
    let what: String
    init<Value>(_ what: Value) { self.what = "\(what)" }
}
