import FoundationEssentials
import LocalHTTP
import RingbackAPI
import RingbackBase
import TestSupport
import Testing

@testable import APIServer
@testable import BrokerCore

@Suite struct `The OpenAPI document` {
    private let document = OpenAPIDocument.document(version: APIHouse.version)

    @Test func `is served as it is`() async throws {
        let answer = try await APIHouse().ask("GET", "/v1/openapi.json")
        #expect(answer.status == 200)
        #expect(answer.response.fields["Content-Type"] == "application/json")
        #expect(answer.json == document)
        #expect(answer["openapi"] == "3.1.0")
        #expect(answer["info"]?["version"]?.string == APIHouse.version)
    }

    @Test func `describes every route with its operation, and no other`() {
        var described: Set<String> = []
        for path in document["paths"]?.object?.members ?? [] {
            for method in path.value.object?.members ?? [] {
                described.insert("\(method.name.uppercased()) \(path.name)")
            }
        }
        #expect(described == Set(Endpoint.allCases.map { "\($0.method.rawValue) \($0.path)" }))
        for endpoint in Endpoint.allCases {
            let operation = document["paths"]?[endpoint.path]?[endpoint.method.rawValue.lowercased()]
            #expect(operation?["x-ringback-operation"]?.string == endpoint.operation.rawValue)
            #expect(operation?["operationId"]?.string == endpoint.rawValue)
            #expect(operation?["summary"]?.string?.isEmpty == false)
            let segments = endpoint.path.split(separator: "/").filter { $0.hasPrefix("{") }
            let parameters = operation?["parameters"]?.array ?? []
            #expect(parameters.count { $0["in"] == "path" } == segments.count)
            #expect(Set(parameters.compactMap { $0["name"]?.string }).count == parameters.count)
        }
    }

    @Test func `says what the committed document says`() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Vectors/openapi")
        let text = try Data(contentsOf: folder.appending(path: "document.json"))
        let committed = Self.meaning(try JSON(parsing: Array(text)))
        let served = Self.meaning(OpenAPIDocument.document(version: "0.0.0"))
        #expect(Self.differences(committed, served, "document") == [])
    }

    /// The document without what makes no difference: the order of members and of required names, and an empty list of
    /// them.
    private static func meaning(_ value: JSON) -> JSON {
        switch value {
        case .array(let elements): return .array(elements.map(meaning))
        case .object(let object):
            var members = object.members.map { JSONObject.Member($0.name, meaning($0.value)) }
            members = members.compactMap { member in
                let names = (member.value.array ?? []).compactMap(\.string)
                guard member.name == "required", member.value.array?.count == names.count else { return member }
                return names.isEmpty ? nil : .init("required", .array(names.sorted().map { .string($0) }))
            }
            return .object(JSONObject(members.sorted { $0.name < $1.name }))
        default: return value
        }
    }

    private static func differences(_ committed: JSON, _ served: JSON, _ place: String) -> [String] {
        guard committed != served else { return [] }
        guard let left = committed.object, let right = served.object else {
            return ["\(place): \(committed.text) became \(served.text)"]
        }
        var found: [String] = []
        for name in Set(left.names).union(right.names).sorted() {
            switch (left[name], right[name]) {
            case (.some(let old), .some(let new)): found += differences(old, new, "\(place).\(name)")
            case (nil, .some(let new)): found.append("\(place).\(name): new: \(new.text)")
            case (.some(let old), nil): found.append("\(place).\(name): gone: \(old.text)")
            case (nil, nil): break
            }
        }
        return found
    }

    @Test func `has one schema for each name`() {
        var schemas: [String: Schema] = [:]
        for component in Router.shared.routes.compactMap(\.content.component) {
            for part in Schema.component(component).components {
                let known = schemas.updateValue(part.schema, forKey: part.name)
                #expect(known == nil || known == part.schema, "\(part.name)")
            }
        }
    }

    @Test func `describes every event of each stream with its data`() {
        func events(_ path: String) -> [String] {
            let answer = document["paths"]?[path]?["get"]?["responses"]?["200"]
            let reference = answer?["content"]?["text/event-stream"]?["schema"]?["$ref"]?.string ?? ""
            let choices = schema(reference)?["anyOf"]?.array ?? []
            return choices.compactMap { choice in
                let properties = schema(choice["$ref"]?.string ?? "")?["properties"]
                #expect(properties?["data"]?["type"] == "object" && properties?["data"]?["required"] != nil)
                return properties?["event"]?["enum"]?.array?.first?.string
            }
        }
        let broker = BrokerEvent.Kind.allCases.map(\.rawValue)
        let telemetry = TelemetryEvent.allCases.map(\.rawValue)
        #expect(events("/v1/events") == broker + ["dropped"] + telemetry)
        #expect(events("/v1/deep-links") == ["deep_link", "listener_replaced", "dropped"])
    }

    private func schema(_ reference: String) -> JSON? {
        document["components"]?["schemas"]?[String(reference.split(separator: "/").last ?? "")]
    }

    /// An event with a member that its declaration does not have, or with less, is found.
    @Test func `is held against events by an examiner that finds mistakes`() {
        let examiner = JSONSchema(document: document)
        func mistakes(_ event: JSON, _ path: String = "/v1/events") -> [String] {
            examiner.mistakes(ofEvent: event, onStream: path)
        }
        let data: JSON = ["account": "work", "state": "authenticated", "at": 1]
        #expect(mistakes(["event": "signed_in", "id": "1", "data": data]).isEmpty)
        #expect(mistakes(["event": "dropped", "data": ["reason": "x"]]).isEmpty)
        #expect(!mistakes(["event": "signed_in", "data": ["account": "work", "at": 1]]).isEmpty)
        #expect(!mistakes(["event": "session_ending", "data": data]).isEmpty)
        #expect(!mistakes(["event": "unknown", "data": data]).isEmpty)
        #expect(!mistakes(["event": "deep_link", "data": ["scheme": "x", "at": 1, "url": "x://"]]).isEmpty)
        #expect(mistakes(["event": "deep_link", "data": data], "/v1/status") == ["/v1/status is no stream"])
    }

    @Test func `knows every error code, and each under its own status`() {
        let codes = document["components"]?["schemas"]?["Problem"]?["properties"]?["code"]?["enum"]?.array ?? []
        #expect(Set(codes.compactMap(\.string)) == Set(ErrorCode.table.keys.map(\.rawValue)))
        for path in document["paths"]?.object?.members ?? [] {
            for method in path.value.object?.members ?? [] {
                for response in method.value["responses"]?.object?.members ?? [] where response.name >= "400" {
                    for code in response.value["description"]?.string?.split(separator: ", ") ?? [] {
                        #expect(ErrorCode.table[ErrorCode(rawValue: String(code))]?.status == Int(response.name))
                    }
                }
            }
        }
    }

    @Test func `refers only to schemas that it has`() {
        var references: Set<String> = []
        func collect(_ value: JSON) {
            if let reference = value["$ref"]?.string { references.insert(reference) }
            for member in value.object?.members ?? [] { collect(member.value) }
            for element in value.array ?? [] { collect(element) }
        }
        collect(document)
        let known = Set((document["components"]?["schemas"]?.object?.names ?? []).map { "#/components/schemas/\($0)" })
        #expect(references.isSubset(of: known))
        #expect(known.subtracting(references).isEmpty)
    }

    @Test func `is held against answers by an examiner that finds mistakes`() {
        let examiner = SchemaExaminer(document: document)
        func mistakes(_ json: JSON, _ status: Int = 200, type: String = "application/json") -> [String] {
            examiner.mistakes(
                of: ServerResponse(
                    status: status, fields: HTTPFields([("Content-Type", type)]), body: json.serialized()),
                to: "GET", "/v1/accounts/work")
        }
        let good: JSON = ["name": "work", "provider": "oidc", "state": "loading", "source": "x"]
        #expect(mistakes(good).isEmpty)
        #expect(mistakes(good, 201).count == 1)
        #expect(mistakes(good, type: "text/plain").count == 1)
        #expect(mistakes(["name": "work", "provider": "oidc", "state": "loading"]).count == 1)
        #expect(mistakes(["name": 1, "provider": "oidc", "state": "idle", "source": "x", "more": 1]).count == 3)
        let problem: JSON = ["title": "t", "status": 404, "code": "account_not_found", "recovery": "none"]
        #expect(mistakes(problem, 404, type: "application/problem+json").isEmpty)
        let foreign: JSON = ["title": "t", "status": 409, "code": "port_in_use", "recovery": "none"]
        #expect(!mistakes(foreign, 409, type: "application/problem+json").isEmpty)
    }
}

/// Holds an answer against the OpenAPI document: the status must be documented for the route, the media type must be
/// the documented one, the body must fit its schema and have no member that the schema does not name.
struct SchemaExaminer {
    let document: JSON

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
