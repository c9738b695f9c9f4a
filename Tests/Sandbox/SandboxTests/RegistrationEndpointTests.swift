import RingbackBase
import Testing

@testable import Sandbox

@Suite struct `The sandbox, asked to register a client` {
    private let wish: JSON = [
        "redirect_uris": ["http://127.0.0.1/callback"], "application_type": "native",
        "token_endpoint_auth_method": "none", "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"], "client_name": "An app",
    ]

    private func register(
        _ visitor: Visitor, _ body: JSON, token: String? = nil
    ) async -> Answer {
        let fields = token.map { [("Authorization", "Bearer \($0)")] } ?? []
        return await visitor.send("POST", "/register", fields: fields, body: body.serialized())
    }

    private func wish(_ name: String, _ value: JSON?) -> JSON {
        var object = wish.object ?? JSONObject()
        object[name] = value
        return .object(object)
    }

    @Test func `names the endpoint, and the client signs in from then on, at any port`() async throws {
        let visitor = Visitor.quick()
        let metadata = await visitor.send("GET", "/.well-known/openid-configuration").json
        #expect(metadata["registration_endpoint"]?.string == origin + "/register")
        let answer = await register(visitor, wish)
        #expect(answer.status == 201 && answer.json["client_secret"] == nil)
        #expect(answer.json["client_name"] == "An app" && answer.json["token_endpoint_auth_method"] == "none")
        let id = try #require(answer.json["client_id"]?.string)
        for (redirectURI, status) in [("http://127.0.0.1:7/callback", 303), ("http://127.0.0.1:7/other", 400)] {
            let query = FormEncoding.encode([
                ("client_id", id), ("redirect_uri", redirectURI), ("response_type", "code"), ("scope", "openid"),
                ("code_challenge", challenge), ("code_challenge_method", "S256"),
            ])
            #expect(await visitor.send("GET", "/authorize?\(query)").status == status)
        }
    }

    @Test func `gives a secret to who wants one, or whatever it is set to`() async {
        let visitor = Visitor.quick()
        let wanted = await register(visitor, wish("token_endpoint_auth_method", nil)).json
        #expect(wanted["token_endpoint_auth_method"] == "client_secret_basic" && wanted["client_secret"] != nil)
        #expect(wanted["client_secret_expires_at"] == 0)
        await visitor.control([
            "registered_authentication": "client_secret_post", "registered_secret_lifetime": 60,
        ])
        let set = await register(visitor, wish).json
        #expect(set["token_endpoint_auth_method"] == "client_secret_post")
        #expect(set["client_secret_expires_at"]?.integer == visitor.clock.now + 60)
    }

    @Test func `gives another secret and another token with an update, and keeps the client`() async throws {
        let visitor = Visitor.quick()
        let first = await register(visitor, wish("token_endpoint_auth_method", nil)).json
        let id = try #require(first["client_id"]?.string)
        var body = try #require(first.object)
        func put(_ body: JSONObject, _ token: JSON?) async -> Answer {
            await visitor.send(
                "PUT", "/register/client?client_id=\(id)",
                fields: [("Authorization", "Bearer \(token?.string ?? "")"), ("Content-Type", "application/json")],
                body: JSON.object(body).serialized())
        }
        #expect(await put(body, first["registration_access_token"]).status == 400)
        for name in [
            "registration_access_token", "registration_client_uri", "client_secret_expires_at", "client_id_issued_at",
        ] {
            body[name] = nil
        }
        #expect(await put(body, "another").status == 401)
        let second = await put(body, first["registration_access_token"]).json
        #expect(second["client_id"]?.string == id && second["client_secret"] != first["client_secret"])
        #expect(second["registration_access_token"] != first["registration_access_token"])
        body["client_secret"] = "chosen"
        #expect(await put(body, second["registration_access_token"]).status == 400)
    }

    @Test func `wants an initial access token where it is set to, and none where it is off`() async {
        let visitor = Visitor.quick { $0.registration = .token }
        #expect(await register(visitor, wish).error == "invalid_token")
        #expect(await register(visitor, wish, token: "another").status == 401)
        #expect(await register(visitor, wish, token: "initial-access-token").status == 201)
        await visitor.control(["registration": "off"])
        #expect(await register(visitor, wish).status == 404)
        let metadata = await visitor.send("GET", "/.well-known/openid-configuration").json
        #expect(metadata["registration_endpoint"] == nil)
    }

    @Test func `refuses what it does not offer, in the standard's words`() async {
        let visitor = Visitor.quick()
        let wrong: [JSON?] = [
            nil, [], ["http://app.example.org/"], ["http://127.0.0.1/#f"], [1], "http://127.0.0.1/",
        ]
        for uris in wrong {
            #expect(await register(visitor, wish("redirect_uris", uris)).error == "invalid_redirect_uri")
        }
        for (name, value) in [
            ("application_type", "web"), ("grant_types", ["implicit"]), ("response_types", ["token"]),
            ("token_endpoint_auth_method", "private_key_jwt"),
        ] as [(String, JSON)] {
            #expect(await register(visitor, wish(name, value)).error == "invalid_client_metadata")
        }
        #expect(await register(visitor, []).error == "invalid_client_metadata")
    }

    @Test func `lets a client be read and deleted by its own token alone`() async throws {
        let visitor = Visitor.quick()
        let answer = await register(visitor, wish).json
        let uri = try #require(answer["registration_client_uri"]?.string).replacing(origin, with: "")
        let own = [("Authorization", "Bearer \(answer["registration_access_token"]?.string ?? "")")]
        #expect(await visitor.send("GET", uri, fields: own).json == answer)
        #expect(await visitor.send("GET", uri).status == 401)
        #expect(await visitor.send("DELETE", uri, fields: [("Authorization", "Bearer x")]).status == 401)
        #expect(await visitor.send("DELETE", uri, fields: own).status == 204)
        #expect(await visitor.send("DELETE", uri, fields: own).status == 401)
        let counters = await visitor.send("GET", "/sandbox/counters").json
        #expect(counters["registrations"] == 1 && counters["registrations_deleted"] == 1)
    }

    @Test func `shows what was asked for in its log`() async {
        let visitor = Visitor.quick()
        _ = await register(visitor, wish)
        let requests = await visitor.send("GET", "/sandbox/log").json["requests"]?.array ?? []
        #expect(requests.last?["endpoint"] == "registration" && requests.last?["document"] == wish)
    }
}
