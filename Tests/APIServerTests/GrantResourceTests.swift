import StrictJSON
import Testing

@testable import APIServer
@testable import BrokerCore

@Suite(.timeLimit(.minutes(1))) struct `Restricted sockets on the socket` {
    private let made = #"{"name":"ci","accounts":["work"],"scope":"openid","ttl":3600}"#

    @Test func `are made, shown and ended`() async throws {
        let house = try await House()
        #expect(await house.ask("GET", "/v1/grants")["grants"]?.array == [])
        let grant = await house.ask("POST", "/v1/grants", made)
        #expect(grant.status == 201)
        #expect(grant["name"] == "ci" && grant["accounts"] == ["work"] && grant["scope"] == "openid")
        #expect(grant["expires_at"]?.integer == house.clock.now + 3_600 && grant["expires_in"] == 3_600)
        #expect(grant["source"] == "api" && grant["allow_uids"] == [] && grant["socket"] == "/x/ci.sock")
        let id = try #require(grant["id"]?.string)
        #expect(await house.ask("GET", "/v1/grants")["grants"]?.array == [grant.json])
        #expect(await house.ask("GET", "/v1/grants/\(id)").json == grant.json)
        #expect(await house.ask("GET", "/v1/grants/ci").json == grant.json)
        let ended = await house.ask("DELETE", "/v1/grants/\(id)")
        #expect(ended.status == 200 && ended["name"] == "ci")
        #expect(await house.ask("DELETE", "/v1/grants/\(id)").code == "not_found")
        #expect(await house.ask("GET", "/v1/grants/ci").code == "not_found")
    }

    @Test func `may show several accounts, others' programs and an app`() async throws {
        let house = try await House()
        try await house.configure([try House.account("work"), try House.account("mail")])
        let grant = await house.ask(
            "POST", "/v1/grants", #"{"name":"a","accounts":["work"],"account":"mail","allow_uids":[100999]}"#)
        #expect(grant["accounts"] == ["mail", "work"] && grant["allow_uids"] == [100_999])
        #expect(grant["scope"] == nil && grant["expires_at"] == nil)
        let app = await house.ask("POST", "/v1/grants", #"{"name":"b","account":"mail","flatpak":"org.example.App"}"#)
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
    ])
    func `a mistake is named, and nothing is made`(body: String, member: String) async throws {
        let house = try await House()
        let answer = await house.ask("POST", "/v1/grants", body)
        #expect(answer.status == 400)
        #expect(answer.code == "validation_failed")
        #expect(answer["detail"]?.string?.hasPrefix("\(member):") == true, "\(answer.text)")
        #expect(await house.exposures.all.isEmpty)
    }

    @Test func `show accounts that there are, under names that are free`() async throws {
        let house = try await House()
        #expect(
            await house.ask("POST", "/v1/grants", #"{"name":"a","account":"nobody"}"#).code == "account_not_found")
        await house.ask("POST", "/v1/grants", made)
        #expect(await house.ask("POST", "/v1/grants", made).code == "state_conflict")
    }

    @Test func `of the configuration end there`() async throws {
        let house = try await House()
        let order = Exposure.Order(name: "ci", accounts: [try #require(AccountName("work"))])
        await house.exposures.configure([(order, "/etc/x.toml:3")])
        let answer = await house.ask("DELETE", "/v1/grants/ci")
        #expect(answer.code == "state_conflict" && answer["detail"]?.string?.contains("/etc/x.toml:3") == true)
        #expect(await house.ask("GET", "/v1/grants/ci")["source"] == "/etc/x.toml:3")
    }

    @Test func `the audit log knows of them`() async throws {
        let house = try await House()
        await house.ask("POST", "/v1/grants", made)
        await house.ask("DELETE", "/v1/grants/ci")
        let entries = await house.ask("GET", "/v1/audit")["entries"]?.array ?? []
        let opened = try #require(entries.first { $0["event"] == "grant_opened" })
        #expect(opened["grant"] == "ci" && opened["accounts"] == ["work"] && opened["scope"] == "openid")
        let closed = try #require(entries.first { $0["event"] == "grant_closed" })
        #expect(closed["grant"] == "ci" && closed["reason"] == "revoked")
        let requests = entries.filter { $0["event"] == "request" }.compactMap { $0["route"]?.string }
        #expect(Set(requests) == ["POST /v1/grants", "DELETE /v1/grants/{id}"])
    }
}
