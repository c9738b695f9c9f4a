import BrokerCore
import DeepLinks
import Glibc
import LocalHTTP
import RingbackBase
import Testing

@testable import APIServer
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(5))) struct `What the doctor asks` {
    @Test func `checks have a level and a sentence, and no secret`() async throws {
        let house = try await APIHouse()
        try await house.configure([try APIHouse.account("work"), try APIHouse.account("second")])
        try await house.signIn()
        let all = await house.ask("GET", "/v1/diagnostics")
        #expect(all.status == 200 && all["version"]?.string == APIHouse.version)
        #expect(all["pid"]?.integer == Int(getpid()) && all["accounts"] == ["second", "work"])
        let checks = try #require(all["checks"]?.array)
        #expect(Set(checks.compactMap { $0["account"]?.string }) == ["second", "work"])
        for name in ["vault", "discovery", "tls", "clock", "redirect", "session"] {
            #expect(checks.contains { $0["check"]?.string == name }, "\(name)")
        }
        let one = await house.ask("GET", "/v1/diagnostics?account=work")
        #expect(Set((one["checks"]?.array ?? []).compactMap { $0["account"]?.string }) == ["work"])
        for query in ["account=other", "account=%2F"] {
            #expect(await house.ask("GET", "/v1/diagnostics?\(query)").code == "account_not_found")
        }
        #expect(await house.ask("POST", "/v1/diagnostics", "{}").status == 405)
    }

    @Test func `a port that cannot be had, and a session's trouble, are found`() async throws {
        let house = try await APIHouse()
        var account = try APIHouse.account("work")
        account.redirectURI = "http://127.0.0.1:1/"
        try await house.configure([account])
        let checks = await house.ask("GET", "/v1/diagnostics")["checks"]?.array ?? []
        let redirect = try #require(checks.first { $0["check"] == "redirect" })
        #expect(
            redirect["level"] == "wrong"
                && redirect["message"]?.string?.contains("port 1 is in use by uid 1001") == true)
    }

    @Test func `a scheme that is not configured has no link: what went round would be refused`() async throws {
        let house = try await APIHouse()
        let body = #"{"scheme":"org.example.app"}"#
        let refused = await house.ask("POST", "/v1/diagnostics/links", body)
        #expect(refused.code == "state_conflict" && refused.text.contains("not configured"), "\(refused.text)")
        await house.links.configure([LinkScheme(name: "org.example.app", hasCommand: false, takesURL: false)])
        #expect(await house.ask("POST", "/v1/diagnostics/links", body).status == 201)
    }

    @Test func `a link arrives once it was brought back, and is neither a callback nor an app's`() async throws {
        let house = try await APIHouse()
        await house.links.configure([LinkScheme(name: "org.example.app", hasCommand: false, takesURL: false)])
        let made = await house.ask("POST", "/v1/diagnostics/links", #"{"scheme":"Org.Example.App"}"#)
        #expect(made.status == 201 && made["arrived"] == false && made["scheme"] == "org.example.app")
        let id = try #require(made["id"]?.string)
        let url = try #require(made["url"]?.string)
        #expect(url == "org.example.app://ringback-doctor/\(id)" && id.utf8.count == 32)
        #expect(await house.ask("GET", "/v1/diagnostics/links/\(id)")["arrived"] == false)
        // Another name, and another scheme, are nobody's; neither is handed to an app.
        for other in [
            url.dropLast() + "x", "org.other.app://ringback-doctor/\(id)", "org.example.app://ringback-doctor",
        ] {
            let refused = await house.ask(
                "POST", "/v1/callbacks", JSON.object(JSONObject([.init("url", .string(String(other)))])).text)
            #expect(refused.status == 400 && refused.code == "invalid_callback", "\(other)")
        }
        async let waiting = house.ask("GET", "/v1/diagnostics/links/\(id)?wait=60")
        let callback = JSON.object(
            JSONObject([.init("url", .string(url.uppercased().replacing(id.uppercased(), with: id) + "/"))]))
        let delivered = await house.ask("POST", "/v1/callbacks", callback.text, peer: .local(uid: 1_000, pid: getpid()))
        #expect(delivered.status == 200 && delivered["diagnostic_link"]?["arrived"] == true, "\(delivered.text)")
        let arrived = await waiting
        #expect(arrived["arrived"] == true && arrived["executable"]?.string?.hasPrefix("/") == true)
        #expect(await house.ask("GET", "/v1/flows")["flows"] == [])
    }

    @Test func `links are few, short-lived, and of an app's scheme`() async throws {
        let house = try await APIHouse()
        await house.links.configure([LinkScheme(name: "app", hasCommand: false, takesURL: false)])
        for body in [
            "{}", #"{"scheme":"https"}"#, #"{"scheme":"javascript"}"#, #"{"scheme":"a b"}"#, #"{"scheme":1}"#,
        ] {
            #expect(await house.ask("POST", "/v1/diagnostics/links", body).code == "validation_failed", "\(body)")
        }
        var id = ""
        for _ in 0..<64 {
            let made = await house.ask("POST", "/v1/diagnostics/links", #"{"scheme":"app"}"#)
            id = made["id"]?.string ?? id
        }
        #expect(await house.ask("POST", "/v1/diagnostics/links", #"{"scheme":"app"}"#).code == "state_conflict")
        house.clock.advance(by: 121)
        #expect(await house.ask("GET", "/v1/diagnostics/links/\(id)").code == "not_found")
        #expect(await house.ask("POST", "/v1/diagnostics/links", #"{"scheme":"app"}"#).status == 201)
        #expect(await house.ask("GET", "/v1/diagnostics/links/x").code == "not_found")
    }
}
