// The daemon's own description of its socket API, as somebody reads it who writes a client from it.

import StrictJSON

struct APIDescription: Sendable {
    let document: JSON

    /// Every operation, as `GET /v1/status`.
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
        var mistakes = check(answer.json, schema, "body")
        guard answer.isProblem else { return mistakes }
        if answer["status"]?.integer != answer.status { mistakes.append("another status in the problem") }
        let codes = described["description"]?.string?.split(separator: ", ").map(String.init) ?? []
        if !codes.contains(answer.code ?? "") { mistakes.append("code \(answer.code ?? "none") with this status") }
        return mistakes
    }

    /// The part of JSON Schema that the document uses.
    private func check(_ value: JSON, _ schema: JSON, _ place: String) -> [String] {
        if let reference = schema["$ref"]?.string {
            let name = String(reference.split(separator: "/").last ?? "")
            guard let target = document["components"]?["schemas"]?[name] else { return ["\(place): no \(reference)"] }
            return check(value, target, place)
        }
        var mistakes: [String] = []
        if let type = schema["type"]?.string, !APIDescription.isOf(type, value) {
            mistakes.append("\(place) is no \(type)")
        }
        if let words = schema["enum"]?.array, !words.contains(value) { mistakes.append("\(place) is \(value.text)") }
        for name in schema["required"]?.array?.compactMap(\.string) ?? [] where value[name] == nil {
            mistakes.append("\(place).\(name) is missing")
        }
        for element in value.array ?? [] {
            if let items = schema["items"] { mistakes += check(element, items, "\(place)[]") }
        }
        for member in value.object?.members ?? [] {
            let name = "\(place).\(member.name)"
            if let inner = schema["properties"]?[member.name] ?? schema["additionalProperties"] {
                mistakes += check(member.value, inner, name)
            } else if schema["properties"] != nil {
                mistakes.append("\(name) is not documented")
            }
        }
        return mistakes
    }

    private static func isOf(_ type: String, _ value: JSON) -> Bool {
        switch type {
        case "string": value.string != nil
        case "integer": value.integer != nil
        case "boolean": value.bool != nil
        case "object": value.object != nil
        case "array": value.array != nil
        default: false
        }
    }
}
