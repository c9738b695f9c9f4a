public import RingbackBase

/// The part of JSON Schema that the daemon's OpenAPI document uses, as a checker of bodies.
public struct JSONSchema: Sendable {
    /// The OpenAPI document, whose components `$ref` names.
    private let document: JSON

    public init(document: JSON) {
        self.document = document
    }

    /// What is wrong with a value; empty if nothing is. A member that the schema does not name is wrong.
    public func mistakes(of value: JSON, against schema: JSON, at place: String) -> [String] {
        if let reference = schema["$ref"]?.string {
            let name = String(reference.split(separator: "/").last ?? "")
            guard let target = document["components"]?["schemas"]?[name] else { return ["\(place): no \(reference)"] }
            return mistakes(of: value, against: target, at: place)
        }
        var found: [String] = []
        if let choices = schema["anyOf"]?.array {
            // The mistakes against the schema that fits best.
            let each = choices.map { mistakes(of: value, against: $0, at: place) }
            return each.min { $0.count < $1.count } ?? ["\(place): no schema to choose"]
        }
        if let type = schema["type"]?.string, !JSONSchema.isOf(type, value) { found.append("\(place) is no \(type)") }
        if let values = schema["enum"]?.array, !values.contains(value) { found.append("\(place) is \(value.text)") }
        for name in schema["required"]?.array?.compactMap(\.string) ?? [] where value[name] == nil {
            found.append("\(place).\(name) is missing")
        }
        for (index, element) in (value.array ?? []).enumerated() {
            if let items = schema["items"] {
                found += mistakes(of: element, against: items, at: "\(place)[\(index)]")
            }
        }
        for member in value.object?.members ?? [] {
            let name = "\(place).\(member.name)"
            if let inner = schema["properties"]?[member.name] ?? schema["additionalProperties"] {
                found += mistakes(of: member.value, against: inner, at: name)
            } else if schema["properties"] != nil {
                found.append("\(name) is not documented")
            }
        }
        return found
    }

    /// What is wrong with an event of a stream, which has its fields `event`, `id` and `data` as members; empty if nothing
    /// is.
    public func mistakes(ofEvent event: JSON, onStream path: String) -> [String] {
        let answer = document["paths"]?[path]?["get"]?["responses"]?["200"]
        guard let schema = answer?["content"]?["text/event-stream"]?["schema"] else { return ["\(path) is no stream"] }
        return mistakes(of: event, against: schema, at: event["event"]?.string ?? "an event")
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
