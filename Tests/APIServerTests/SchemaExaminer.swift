import HTTPMessages
import LocalHTTP
import RingbackAPI
import StrictJSON

@testable import APIServer

/// Holds an answer against the OpenAPI document: the status must be documented for the route, the media type must be
/// the documented one, the body must fit its schema and have no member that the schema does not name.
struct SchemaExaminer {
    let document: JSON

    /// What is wrong with an answer; empty if nothing is.
    func mistakes(of response: ServerResponse, to method: String, _ path: String) -> [String] {
        let type = response.fields["Content-Type"] ?? "none"
        guard case .route(let route, _) = Router.shared.match(method: method, path: path) else {
            guard response.status == 404 || response.status == 405 else { return ["an answer without a route"] }
            return type == "application/problem+json"
                ? problem(body(response), response.status) : ["media type \(type)"]
        }
        guard let operation = document["paths"]?[route.endpoint.path]?[method.lowercased()],
            let described = operation["responses"]?[String(response.status)]
        else { return ["\(method) \(route.endpoint.path) documents no status \(response.status)"] }
        guard let schema = described["content"]?[type]?["schema"] else {
            return ["\(method) \(route.endpoint.path) \(response.status) documents no \(type)"]
        }
        if type.hasPrefix("text/") { return [] }
        guard let body = body(response) else { return ["the body is not JSON"] }
        var mistakes = check(body, schema, "body")
        if type == "application/problem+json" {
            mistakes += problem(body, response.status)
            let code = body["code"]?.string ?? ""
            let documented = described["description"]?.string?.split(separator: ", ").map(String.init) ?? []
            if !documented.contains(code) {
                mistakes.append("\(route.endpoint) \(response.status) documents no \(code)")
            }
        }
        return mistakes
    }

    private func body(_ response: ServerResponse) -> JSON? {
        guard case .bytes(let bytes) = response.body else { return nil }
        return try? JSON(parsing: bytes)
    }

    private func problem(_ body: JSON?, _ status: Int) -> [String] {
        guard let body else { return ["the problem is not JSON"] }
        let isSame = body["status"]?.integer == status
        return check(body, ["$ref": "#/components/schemas/Problem"], "problem") + (isSame ? [] : ["another status"])
    }

    /// The subset of JSON Schema that the document uses.
    func check(_ value: JSON, _ schema: JSON, _ path: String) -> [String] {
        if let reference = schema["$ref"]?.string {
            let name = String(reference.split(separator: "/").last ?? "")
            guard let target = document["components"]?["schemas"]?[name] else { return ["\(path): no schema \(name)"] }
            return check(value, target, path)
        }
        var mistakes: [String] = []
        if let type = schema["type"]?.string, !SchemaExaminer.isOf(type, value) {
            mistakes.append("\(path): no \(type)")
        }
        if let words = schema["enum"]?.array, !words.contains(value) { mistakes.append("\(path): \(value.text)") }
        for name in schema["required"]?.array?.compactMap(\.string) ?? [] where value[name] == nil {
            mistakes.append("\(path): \(name) is missing")
        }
        if let items = schema["items"] {
            for (index, element) in (value.array ?? []).enumerated() {
                mistakes += check(element, items, "\(path)[\(index)]")
            }
        }
        if let properties = schema["properties"] {
            for member in value.object?.members ?? [] {
                guard let inner = properties[member.name] else {
                    mistakes.append("\(path).\(member.name) is not documented")
                    continue
                }
                mistakes += check(member.value, inner, "\(path).\(member.name)")
            }
        }
        if let inner = schema["additionalProperties"] {
            for member in value.object?.members ?? [] {
                mistakes += check(member.value, inner, "\(path).\(member.name)")
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
