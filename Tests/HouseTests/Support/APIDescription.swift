import RingbackBase
import TestSupport

/// The daemon's own description of its socket API, as somebody reads it who writes a client from it.
struct APIDescription: Sendable {
    let document: JSON

    var operations: Set<String> {
        var found: Set<String> = []
        for path in document["paths"]?.object?.members ?? [] {
            for method in path.value.object?.names ?? [] { found.insert("\(method.uppercased()) \(path.name)") }
        }
        return found
    }

    /// What is wrong with an answer to an operation; empty if nothing is. The status must be documented, the media type
    /// too, the body must fit its schema and have no member that the schema does not name.
    func mistakes(of answer: Answer, to operation: String) -> [String] {
        let words = operation.split(separator: " ").map(String.init)
        let entry = document["paths"]?[words[1]]?[words[0].lowercased()]
        guard let described = entry?["responses"]?["\(answer.status)"] else { return ["status \(answer.status)"] }
        let type = answer.fields["content-type"] ?? "none"
        guard let schema = described["content"]?[type]?["schema"] else { return ["media type \(type)"] }
        if type.hasPrefix("text/") { return [] }
        var mistakes = JSONSchema(document: document).mistakes(of: answer.json, against: schema, at: "body")
        guard answer.isProblem else { return mistakes }
        if answer["status"]?.integer != answer.status { mistakes.append("another status in the problem") }
        let codes = described["description"]?.string?.split(separator: ", ").map(String.init) ?? []
        if !codes.contains(answer.code ?? "") { mistakes.append("code \(answer.code ?? "none") with this status") }
        return mistakes
    }
}
