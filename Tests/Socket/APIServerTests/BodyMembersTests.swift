import BrokerCore
import RingbackAPI
import RingbackBase
import SupabaseSignIn
import Testing

@testable import APIServer
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `The members of a request's body` {
    /// A member that is null counts as left out, but it has to be one that the route knows.
    @Test(arguments: Endpoint.allCases.filter { $0.method != .get })
    func `are taken where the description has them`(endpoint: Endpoint) async throws {
        let names = try #require(Router.shared[endpoint]).bodyMembers ?? ["anything", "password"]
        let target = endpoint.parameters.reduce(endpoint.path) { path, name in
            path.replacing("{\(name)}", with: name == "account" ? "app" : "x")
        }
        let body = JSON.object(JSONObject(names.map { .init($0, .null) })).text
        let answer = await (try await SupabaseHouse()).ask(endpoint.method.rawValue, target, body)
        #expect(answer["detail"]?.string?.contains("no such member") != true, "\(answer.text)")
    }

    @Test func `are described for every method of signing in`() throws {
        let described = Set(try #require(Router.shared[.signIn]?.bodyMembers))
        #expect(Call.allProjectFields.subtracting(described).isEmpty)
        let changes = try #require(Router.shared[.updateUser]?.bodyMembers)
        #expect(changes.contains("password_confirmation"))
    }

    @Test func `are closed in the description, but for a function's arguments`() throws {
        let document = OpenAPIDocument.document(version: APIHouse.version)
        for endpoint in Endpoint.allCases {
            let body = document["paths"]?[endpoint.path]?[endpoint.method.rawValue.lowercased()]?["requestBody"]
            guard let schema = body?["content"]?["application/json"]?["schema"] else { continue }
            let isOpen = endpoint == .callFunction
            #expect((schema["additionalProperties"] == false) == !isOpen, "\(endpoint.path)")
        }
    }

    @Test(arguments: [
        (
            "PATCH", "/user", #"{"pasword":"longer"}"#,
            "pasword: this request has no such member; did you mean password?"
        ),
        ("PATCH", "/user", #"{"zzzzzzzz":null}"#, "zzzzzzzz: this request has no such member. It has: channel, "),
        ("POST", "/reauthenticate", #"{"nonce":"1"}"#, "nonce: this request has no such member. It has none."),
        ("POST", "/refresh", #"{"fource":true}"#, "fource: this request has no such member; did you mean force?"),
    ])
    func `that nobody reads are refused by name`(method: String, target: String, body: String, words: String)
        async throws
    {
        let house = try await SupabaseHouse()
        let answer = await house.ask(method, target, body)
        #expect(answer.status == 400 && answer.code == "validation_failed")
        #expect(answer["detail"]?.string?.hasPrefix(words) == true, "\(answer.text)")
        #expect(house.project.requests.isEmpty)
    }

    @Test func `say a new password twice in the same way, or not at all`() async throws {
        let house = try await SupabaseHouse.signedIn()
        for body in [
            #"{"password":"longer","password_confirmation":"Longer"}"#, #"{"password_confirmation":"longer"}"#,
            #"{"password":"longer","password_confirmation":""}"#, #"{"password":"longer","password_confirmation":1}"#,
        ] {
            let answer = await house.ask("PATCH", "/user", body)
            #expect(answer.code == "validation_failed")
            #expect(answer["detail"]?.string?.hasPrefix("password_confirmation: ") == true, "\(answer.text)")
        }
        #expect(house.project.last("PUT /user") == nil)
        let body = #"{"password":"longer","password_confirmation":"longer"}"#
        #expect(await house.ask("PATCH", "/user", body).status == 200)
        #expect(house.project.last("PUT /user")?.body == ["password": "longer"])
    }
}
