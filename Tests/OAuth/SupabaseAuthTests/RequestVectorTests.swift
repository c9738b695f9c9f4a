import RingbackBase
import Testing

@testable import SupabaseAuth

private let vectors = SupabaseVector.all(in: "requests")

@Suite struct `The requests of the protocol` {
    @Test func `the vectors are there, and each request of ours has one`() {
        #expect(vectors.count >= 100)
        #expect(Set(vectors.compactMap { $0["call"]?.string }) == Set(RequestCalls.table.keys))
    }

    @Test(arguments: vectors) func `a request is as its vector says`(vector: SupabaseVector) throws {
        let project = try project(of: vector)
        let name = try #require(vector["call"]?.string)
        let call = try #require(RequestCalls.table[name])
        let arguments = RequestCalls.Arguments(object: vector["arguments"]?.object ?? JSONObject())
        let request: HTTPRequest
        do {
            request = try call(project, arguments)
        } catch let error as FieldError {
            #expect(vector["error"]?["field"]?.string == error.field)
            #expect(!error.reason.isEmpty)
            return
        }
        let expected = try #require(vector["request"]?.object, "an error was expected")
        let url = try WebURL(parsing: request.url)
        #expect(request.method == expected["method"]?.string)
        #expect(url.path == expected["path"]?.string)
        #expect(url.fragment == nil)
        #expect(try query(of: url) == texts(expected["query"]))
        #expect(headers(of: request) == texts(expected["headers"]))
        let body = try request.body.map { try JSON(parsing: $0.revealedBytes()) }
        #expect(sorted(body ?? .null) == sorted(expected["body"] ?? .null))
    }

    @Test(arguments: vectors) func `no request carries what the server would misread`(vector: SupabaseVector) throws {
        let arguments = RequestCalls.Arguments(object: vector["arguments"]?.object ?? JSONObject())
        let call = try #require(vector["call"]?.string.flatMap { RequestCalls.table[$0] })
        guard let request = try? call(project(of: vector), arguments) else { return }
        let names = request.fields.lines.map { $0.name.lowercased() }
        for name in ["referer", "cookie", "redirect_to", "x-jwt-aud", "authorization", "origin"] {
            #expect(!names.contains(name))
        }
        // A key of the new form is no token: it never stands where one belongs.
        #expect(request.authorization.map { !$0.revealed().contains("sb_") } ?? true)
        #expect(!request.url.contains("+"))
        #expect(request.limits.maxBody >= 1 << 20)
        #expect(request.limits.timeout == .seconds(20))
    }

    @Test func `a partial response is kept if it may contain the only valid refresh token`() throws {
        let id = "5d0c2b1e-6c34-4b9e-9f5f-0f1a2b3c4d5e"
        let code = try OneTimeCode(parsing: Secret("123456"))
        let token = Secret("t")
        let kept = [
            SupabaseRequest.refresh(token), try .verify(factor: id, challenge: id, proof: .code(code)),
            try .idToken(token, of: "apple", isLink: true), try .idToken(token, of: "apple"),
        ].map(\.keepsPartialBody)
        #expect(kept == [true, true, true, false])
        let project = try SupabaseProject(parsing: "https://ref.supabase.co", apiKey: nil)
        #expect(try project.http(.refresh(token)).keepsPartialBody)
        #expect(try !project.http(.user).keepsPartialBody)
    }

    private func project(of vector: SupabaseVector) throws -> SupabaseProject {
        guard let project = vector["project"] else {
            return try SupabaseProject(parsing: "https://ref.supabase.co", apiKey: Secret("sb_publishable_test"))
        }
        return try SupabaseProject(
            parsing: project["url"]?.string ?? "", apiKey: project["api_key"]?.string.map { Secret($0) },
            layout: project["layout"] == "bare" ? .bare : .gateway)
    }

    private func query(of url: WebURL) throws -> [String: String] {
        let pairs = try FormEncoding.parse(url.query ?? "")
        #expect(Set(pairs.map(\.name)).count == pairs.count)
        return Dictionary(pairs.map { ($0.name, $0.value) }) { first, _ in first }
    }

    private func headers(of request: HTTPRequest) -> [String: String] {
        var headers = Dictionary(uniqueKeysWithValues: request.fields.lines.map { ($0.name.lowercased(), $0.value) })
        headers["authorization"] = request.authorization?.revealed()
        return headers
    }

    private func texts(_ json: JSON?) -> [String: String] {
        Dictionary(uniqueKeysWithValues: (json?.object?.members ?? []).map { ($0.name, $0.value.string ?? "") })
    }

    /// Members in an order of their own: a body means the same in any.
    private func sorted(_ json: JSON) -> JSON {
        switch json {
        case .object(let object):
            .object(JSONObject(object.members.map { .init($0.name, sorted($0.value)) }.sorted { $0.name < $1.name }))
        case .array(let elements): .array(elements.map(sorted))
        default: json
        }
    }
}
