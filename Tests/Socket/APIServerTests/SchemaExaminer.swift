import LocalHTTP
import RingbackAPI
import RingbackBase
import TestSupport

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

    private func check(_ value: JSON, _ schema: JSON, _ place: String) -> [String] {
        JSONSchema(document: document).mistakes(of: value, against: schema, at: place)
    }
}
