import RingbackBase
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `Restricted sockets on the socket` {
    private let made = #"{"name":"ci","accounts":["work"],"scope":"openid","ttl":3600}"#

    @Test func `are made, shown and ended`() async throws {
        let house = try await APIHouse()
        #expect(await house.ask("GET", "/v1/exposed-sockets")["exposed_sockets"]?.array == [])
        let grant = await house.ask("POST", "/v1/exposed-sockets", made)
        #expect(grant.status == 201)
        #expect(grant["name"] == "ci" && grant["accounts"] == ["work"] && grant["scope"] == "openid")
        #expect(grant["expires_at"]?.integer == house.clock.now + 3_600 && grant["expires_in"] == 3_600)
        #expect(grant["source"] == "api" && grant["allow_uids"] == [] && grant["socket"] == "/x/ci.sock")
        let id = try #require(grant["id"]?.string)
        #expect(await house.ask("GET", "/v1/exposed-sockets")["exposed_sockets"]?.array == [grant.json])
        #expect(await house.ask("GET", "/v1/exposed-sockets/\(id)").json == grant.json)
        #expect(await house.ask("GET", "/v1/exposed-sockets/ci").json == grant.json)
        let ended = await house.ask("DELETE", "/v1/exposed-sockets/\(id)")
        #expect(ended.status == 200 && ended["name"] == "ci")
        #expect(await house.ask("DELETE", "/v1/exposed-sockets/\(id)").code == "not_found")
        #expect(await house.ask("GET", "/v1/exposed-sockets/ci").code == "not_found")
    }

    @Test func `may show several accounts, others' programs and an app`() async throws {
        let house = try await APIHouse()
        try await house.configure([try APIHouse.account("work"), try APIHouse.account("mail")])
        let grant = await house.ask(
            "POST", "/v1/exposed-sockets", #"{"name":"a","accounts":["work"],"account":"mail","allow_uids":[100999]}"#)
        #expect(grant["accounts"] == ["mail", "work"] && grant["allow_uids"] == [100_999])
        #expect(grant["scope"] == nil && grant["expires_at"] == nil)
        let app = await house.ask(
            "POST", "/v1/exposed-sockets", #"{"name":"b","account":"mail","flatpak":"org.example.App"}"#)
        #expect(app["flatpak"] == "org.example.App")
    }

    @Test(arguments: [
        (#"{"accounts":["work"]}"#, "name"), (#"{"name":"A","accounts":["work"]}"#, "name"),
        (#"{"name":"../x","accounts":["work"]}"#, "name"), (#"{"name":"/tmp/x","accounts":["work"]}"#, "name"),
        (#"{"name":7,"accounts":["work"]}"#, "name"), (#"{"name":"a"}"#, "accounts"),
        (#"{"name":"a","accounts":"work"}"#, "accounts"), (#"{"name":"a","accounts":[1]}"#, "accounts"),
        (#"{"name":"a","account":"work","scope":" "}"#, "scope"),
        (#"{"name":"a","account":"work","scope":["openid"]}"#, "scope"),
        (#"{"name":"a","account":"work","scope":"a\"b"}"#, "scope"),
        (#"{"name":"a","account":"work","ttl":0}"#, "ttl"), (#"{"name":"a","account":"work","ttl":"8h"}"#, "ttl"),
        (#"{"name":"a","account":"work","ttl":31536001}"#, "ttl"),
        (#"{"name":"a","account":"work","allow_uids":[65534]}"#, "allow_uids"),
        (#"{"name":"a","account":"work","allow_uids":[-1]}"#, "allow_uids"),
        (#"{"name":"a","account":"work","allow_uids":[4294967296]}"#, "allow_uids"),
        (#"{"name":"a","account":"work","allow_uids":7}"#, "allow_uids"),
        (#"{"name":"a","account":"work","flatpak":"../../x"}"#, "flatpak"),
        (#"{"name":"a","account":"work","flatpak":"org.example.App","allow_uids":[7]}"#, "allow_uids"),
        // A script whose variable is empty must not show everything.
        (#"{"name":"a","account":"work","scope":null}"#, "scope"),
        (#"{"name":"a","account":"work","ttl":null}"#, "ttl"),
        // No member is a path, and what is not understood may have been meant as a bound.
        (#"{"name":"a","account":"work","socket":"/tmp/x"}"#, "socket"),
        (#"{"name":"a","account":"work","path":"/tmp/x"}"#, "path"),
        (#"{"name":"a","account":"work","scopes":"openid"}"#, "scopes"),
        (#"{"name":"a","account":"work","mcp":{}}"#, "mcp"), (#"{"name":"a","account":"work","mcp":true}"#, "mcp"),
        (#"{"name":"a","account":"linear","mcp":null}"#, "mcp"),
        (#"{"name":"a","accounts":["linear","work"],"mcp":{}}"#, "accounts"),
        (#"{"name":"a","account":"linear","mcp":{},"scope":"openid"}"#, "scope"),
        (#"{"name":"a","account":"linear","mcp":{"tools":null}}"#, "mcp.tools"),
        (#"{"name":"a","account":"linear","mcp":{"tools":[""]}}"#, "mcp.tools"),
        (#"{"name":"a","account":"linear","mcp":{"tools":"echo"}}"#, "mcp.tools"),
        (#"{"name":"a","account":"linear","mcp":{"tools":["a\u0007"]}}"#, "mcp.tools"),
        (#"{"name":"a","account":"linear","mcp":{"methods":["tools/cal"]}}"#, "mcp.methods"),
        (#"{"name":"a","account":"linear","mcp":{"tool":["echo"]}}"#, "mcp.tool"),
    ])
    func `a mistake is named, and nothing is made`(body: String, member: String) async throws {
        let house = try await APIHouse()
        try await house.configure([try APIHouse.account("work"), try APIHouse.linear()])
        let answer = await house.ask("POST", "/v1/exposed-sockets", body)
        #expect(answer.status == 400)
        #expect(answer.code == "validation_failed")
        #expect(answer["detail"]?.string?.hasPrefix("\(member):") == true, "\(answer.text)")
        #expect(await house.exposedSockets.all.isEmpty)
    }

    @Test func `serve an MCP server, with what was named`() async throws {
        let house = try await APIHouse()
        try await house.configure([try APIHouse.linear()])
        let all = await house.ask("POST", "/v1/exposed-sockets", #"{"name":"a","account":"linear","mcp":{}}"#)
        #expect(all.status == 201, "\(all.text)")
        #expect(all["mcp"]?["tools"] == nil && all["mcp"]?["methods"] == ["tools/call", "tools/list"])
        let some = await house.ask(
            "POST", "/v1/exposed-sockets",
            #"{"name":"b","account":"linear","mcp":{"tools":["echo"],"methods":["prompts/get"]}}"#)
        #expect(some["mcp"]?["tools"] == ["echo"] && some["mcp"]?["methods"] == ["prompts/get"])
        let none = await house.ask(
            "POST", "/v1/exposed-sockets", #"{"name":"c","account":"linear","mcp":{"tools":[]}}"#)
        #expect(none["mcp"]?["tools"] == [])
        let listed = await house.ask("GET", "/v1/exposed-sockets")["exposed_sockets"]?.array ?? []
        #expect(listed == [all.json, some.json, none.json])
    }

    @Test func `show accounts that there are, under names that are free`() async throws {
        let house = try await APIHouse()
        #expect(
            await house.ask("POST", "/v1/exposed-sockets", #"{"name":"a","account":"nobody"}"#).code
                == "account_not_found")
        await house.ask("POST", "/v1/exposed-sockets", made)
        #expect(await house.ask("POST", "/v1/exposed-sockets", made).code == "state_conflict")
    }

    @Test func `of the configuration are ended too, until their table is changed`() async throws {
        let house = try await APIHouse()
        let work = try #require(AccountName("work"))
        let order = ExposedSocket.Order(name: "ci", accounts: [work])
        await house.exposedSockets.configure([(order, "/etc/x.toml:3")])
        #expect(await house.ask("GET", "/v1/exposed-sockets/ci")["source"] == "/etc/x.toml:3")
        let answer = await house.ask("DELETE", "/v1/exposed-sockets/ci")
        #expect(answer.status == 200 && answer["source"] == "/etc/x.toml:3")
        let again = await house.ask("DELETE", "/v1/exposed-sockets/ci")
        #expect(again.code == "not_found" && again["detail"]?.string?.contains("/etc/x.toml:3") == true)
        let list = await house.ask("GET", "/v1/exposed-sockets")
        #expect(list["exposed_sockets"] == [])
        let closed = list["closed"]?.array ?? []
        #expect(closed.map { $0["name"] } == ["ci"] && closed.map { $0["reason"] } == ["revoked"])
        // As it was meant: nobody is warned.
        #expect(await house.ask("GET", "/v1/status")["warnings"] == [])
        await house.exposedSockets.configure([(order, "/etc/x.toml:3")])
        #expect(await house.ask("GET", "/v1/exposed-sockets")["exposed_sockets"]?.array == [])
    }

    @Test func `that a table of the configuration would take the place of stay, and it is said`() async throws {
        let house = try await APIHouse()
        await house.ask("POST", "/v1/exposed-sockets", made)
        let order = ExposedSocket.Order(name: "ci", accounts: [try #require(AccountName("work"))])
        await house.exposedSockets.configure([(order, "/etc/x.toml:3")])
        #expect(await house.ask("GET", "/v1/exposed-sockets/ci")["scope"] == "openid")
        let closed = await house.ask("GET", "/v1/exposed-sockets")["closed"]?.array ?? []
        #expect(closed.map { $0["reason"] } == ["name_taken"])
        let warnings = await house.ask("GET", "/v1/status")["warnings"]?.array?.compactMap(\.string) ?? []
        #expect(warnings.count == 1 && warnings[0].contains("/etc/x.toml:3"))
        let checks = await house.ask("GET", "/v1/diagnostics")["checks"]?.array ?? []
        let check = try #require(checks.first { $0["check"] == "expose" })
        #expect(check["level"] == "warning" && check["message"]?.string?.contains("/etc/x.toml:3") == true)
        // An account's own examination is about that account.
        let one = await house.ask("GET", "/v1/diagnostics?account=work")["checks"]?.array ?? []
        #expect(!one.contains { $0["check"] == "expose" })
    }

    @Test func `end with the account that they were made for`() async throws {
        let house = try await APIHouse()
        await house.ask("POST", "/v1/exposed-sockets", made)
        var account = try APIHouse.account("work")
        account.clientID = "another"
        try await house.configure([account])
        await house.exposedSockets.configure([])
        let list = await house.ask("GET", "/v1/exposed-sockets")
        #expect(list["exposed_sockets"] == [] && list["closed"]?.array?.map { $0["reason"] } == ["account_changed"])
        #expect(await house.ask("GET", "/v1/status")["warnings"]?.array?.count == 1)
        let entries = await house.ask("GET", "/v1/audit")["entries"]?.array ?? []
        #expect(entries.contains { $0["event"] == "exposed_socket_closed" && $0["reason"] == "account_changed" })
    }

    @Test func `of which nothing can be served are made, with a note`() async throws {
        let house = try await APIHouse()
        func notes(_ name: String, _ scope: String) async -> [String] {
            let body = #"{"name":"\#(name)","account":"work","scope":"\#(scope)"}"#
            return await house.ask("POST", "/v1/exposed-sockets", body)["notes"]?.array?.compactMap(\.string) ?? []
        }
        let none = await notes("a", "calendar")
        #expect(none.count == 1 && none[0].contains("“calendar”") && none[0].contains("none will be served"))
        let some = await notes("b", "openid calendar")
        #expect(some.count == 1 && some[0].contains("“openid” at most"))
        #expect(await notes("c", "openid") == [])
        // What is good for less is served as it is.
        #expect(await notes("d", "openid email calendar") == [])
    }

    @Test func `for a confined program that may make sandboxes of its own are named so in the audit log`()
        async throws
    {
        let house = try await APIHouse()
        let order = #""name":"run","account":"work","nested":true"#
        #expect(await house.ask("POST", "/v1/exposed-sockets", "{\(order)}")["code"] == "validation_failed")
        #expect(
            await house.ask("POST", "/v1/exposed-sockets", #"{\#(order),"until":"disconnect"}"#)["nested"] == true)
        await house.ask("POST", "/v1/exposed-sockets", made)
        let entries = await house.ask("GET", "/v1/audit")["entries"]?.array ?? []
        let opened = entries.filter { $0["event"] == "exposed_socket_opened" }
        #expect(opened.map { $0["nested"] } == [true, nil])
    }

    @Test func `the audit log knows of them`() async throws {
        let house = try await APIHouse()
        await house.ask("POST", "/v1/exposed-sockets", made)
        await house.ask("DELETE", "/v1/exposed-sockets/ci")
        let entries = await house.ask("GET", "/v1/audit")["entries"]?.array ?? []
        let opened = try #require(entries.first { $0["event"] == "exposed_socket_opened" })
        #expect(opened["exposed_socket"] == "ci" && opened["accounts"] == ["work"] && opened["scope"] == "openid")
        let closed = try #require(entries.first { $0["event"] == "exposed_socket_closed" })
        #expect(closed["exposed_socket"] == "ci" && closed["reason"] == "revoked")
        let requests = entries.filter { $0["event"] == "request" }.compactMap { $0["route"]?.string }
        #expect(Set(requests) == ["POST /v1/exposed-sockets", "DELETE /v1/exposed-sockets/{id}"])
    }
}
