import HTTPMessages
import LocalHTTP
import RingbackAPI
import StrictJSON
import Testing

@testable import APIServer

@Suite struct `The OpenAPI document` {
    private let document = OpenAPIDocument.document(version: House.version)

    @Test func `is served as it is`() async throws {
        let answer = try await House().ask("GET", "/v1/openapi.json")
        #expect(answer.status == 200)
        #expect(answer.response.fields["Content-Type"] == "application/json")
        #expect(answer.json == document)
        #expect(answer["openapi"] == "3.1.0")
        #expect(answer["info"]?["version"]?.string == House.version)
    }

    @Test func `describes every route with its operation, and no other`() {
        var described: Set<String> = []
        for path in document["paths"]?.object?.members ?? [] {
            for method in path.value.object?.members ?? [] {
                described.insert("\(method.name.uppercased()) \(path.name)")
            }
        }
        #expect(described == Set(Route.all.map { "\($0.method) \($0.path)" }))
        for route in Route.all {
            let operation = document["paths"]?[route.path]?[route.method.lowercased()]
            #expect(operation?["x-ringback-operation"]?.string == route.operation.rawValue)
            #expect(operation?["operationId"]?.string == route.id.rawValue)
            #expect(operation?["summary"]?.string?.isEmpty == false)
            let segments = route.path.split(separator: "/").filter { $0.hasPrefix("{") }
            let parameters = operation?["parameters"]?.array ?? []
            #expect(parameters.count { $0["in"] == "path" } == segments.count)
            #expect(Set(parameters.compactMap { $0["name"]?.string }).count == parameters.count)
        }
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
