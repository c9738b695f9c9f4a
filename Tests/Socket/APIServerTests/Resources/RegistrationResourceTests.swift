import OAuthSignIn
import RingbackBase
import Testing

@testable import APIServer

@Suite struct `Registrations over the API` {
    private let wish = #"{"account":"play","issuer":"https://id.example"}"#

    private func asks(_ house: APIHouse, _ members: String) async -> APIHouse.Answer {
        await house.ask("POST", "/v1/registrations", "{\(members)}")
    }

    @Test func `give the client, and nothing that is secret`() async throws {
        let house = try await APIHouse(vault: LockingVault())
        house.provider.registersClients()
        let answer = await house.ask(
            "POST", "/v1/registrations",
            #"{"account":"play","issuer":"https://id.example","scopes":"openid email","initial_access_token":"iat"}"#)
        #expect(answer.status == 201, "\(answer.text)")
        #expect(
            answer.json == [
                "account": "play", "issuer": "https://id.example", "client_id": "c1",
                "token_endpoint_auth_method": "client_secret_basic", "client_secret_registered": true,
                "client_secret_expires_at": 1_900_000_000, "redirect_uris": ["http://127.0.0.1:4711/callback/play"],
                "redirect_uris_requested": ["http://127.0.0.1:4711/callback/play"], "scopes": "openid email",
                "managed": true,
            ])
        let audit = await house.ask("GET", "/v1/audit")
        let entry = audit["entries"]?.array?.first { $0["event"] == "client_registered" }
        #expect(entry?["account"] == "play" && entry?["client_id"] == "c1", "\(audit.text)")

        let target = "/v1/registrations/play?issuer=https%3A%2F%2Fid.example&client_id=c1"
        let deleted = await house.ask("DELETE", target)
        #expect(deleted.status == 200 && deleted["deleted_at_provider"] == true, "\(deleted.text)")
        #expect(await house.ask("DELETE", target).code == "not_found")
    }

    @Test func `need a name, an issuer and values that can be`() async throws {
        let house = try await APIHouse(vault: LockingVault())
        let issuer = #""issuer":"https://id.example""#
        for members in [
            "", #""account":"play""#, issuer, #""account":"Play",\#(issuer)"#, #""account":7,\#(issuer)"#,
            #""account":"play","issuer":"""#, #""account":"play",\#(issuer),"token_endpoint_auth_method":"tls""#,
            #""account":"play",\#(issuer),"initial_access_token":"""#,
            #""account":"play",\#(issuer),"initial_access_token":"a\r\nb""#,
            #""account":"play",\#(issuer),"ca_file":"/none""#, #""account":"play",\#(issuer),"ca_file":7"#,
        ] {
            let answer = await asks(house, members)
            #expect(answer.status == 400 && answer.code == "validation_failed", "\(members): \(answer.text)")
        }
        for target in ["/v1/registrations/play?issuer=", "/v1/registrations/play?client_id=c1"] {
            #expect(await house.ask("DELETE", target).code == "validation_failed")
        }
        // Without an issuer it is the account's own.
        #expect(await house.ask("DELETE", "/v1/registrations/play").code == "account_not_found")
        #expect(await house.ask("DELETE", "/v1/registrations/work").code == "not_found")
        #expect(await house.ask("DELETE", "/v1/registrations/Play?issuer=x").code == "account_not_found")
    }

    @Test func `are refused for an account that is there, and without a vault that lasts`() async throws {
        let lasting = try await APIHouse(vault: LockingVault())
        let there = await asks(lasting, #""account":"work","issuer":"https://id.example""#)
        #expect(there.status == 409 && there.code == "state_conflict")
        let answer = await (try APIHouse()).ask("POST", "/v1/registrations", wish)
        #expect(answer.status == 409 && answer["detail"]?.string?.contains("in memory") == true, "\(answer.text)")
    }

    @Test func `say why there is no client`() async throws {
        let house = try await APIHouse(vault: LockingVault())
        let none = await house.ask("POST", "/v1/registrations", wish)
        #expect(none.status == 400 && none.code == "invalid_configuration", "\(none.text)")
        house.provider.goAway()
        let away = await house.ask("POST", "/v1/registrations", wish)
        // What is known of the provider is believed for a while.
        #expect([400, 503].contains(away.status), "\(away.text)")
        let odd = await asks(house, #""account":"play","issuer":"nonsense""#)
        #expect(odd.status == 400 && odd.code == "invalid_configuration", "\(odd.text)")
    }
}

@Suite struct `A sign-out that asks for the page at the provider` {
    @Test func `gets it with the ID token, which the audit log tells of`() async throws {
        let house = try await APIHouse()
        house.provider.endsSessions()
        try await house.signIn()
        let answer = await house.ask("DELETE", "/v1/accounts/work/session?end_session=true")
        #expect(answer.status == 200 && answer["state"] == "unauthenticated")
        let url = try #require(answer["end_session_url"]?.string)
        #expect(url.hasPrefix("https://id.example/logout?id_token_hint=") && url.contains("client_id=ringback"))
        let entries = await house.ask("GET", "/v1/audit")["entries"]?.array ?? []
        #expect(entries.contains { $0["operation"] == "id_token" && $0["account"] == "work" })
        // Signed out, the page names nobody.
        let again = await house.ask("DELETE", "/v1/accounts/work/session?end_session=true")
        #expect(again["end_session_url"]?.string?.contains("id_token_hint") == false)
    }

    @Test func `gets it without a hint, or not at all, as it likes`() async throws {
        let house = try await APIHouse()
        house.provider.endsSessions()
        try await house.signIn()
        let plain = await house.ask("DELETE", "/v1/accounts/work/session?end_session=plain")
        #expect(plain["end_session_url"]?.string?.hasPrefix("https://id.example/logout?client_id=") == true)
        try await house.signIn()
        let none = await house.ask("DELETE", "/v1/accounts/work/session")
        #expect(none.status == 200 && none["end_session_url"] == nil)
        #expect(await house.ask("DELETE", "/v1/accounts/work/session?end_session=yes").code == "validation_failed")
        #expect(await house.ask("DELETE", "/v1/accounts/none/session?end_session=true").code == "account_not_found")
    }

    @Test func `is a sign-out all the same where there is no page, or nobody to ask`() async throws {
        let house = try await APIHouse.signedIn()
        let answer = await house.ask("DELETE", "/v1/accounts/work/session?end_session=true")
        #expect(answer.status == 200 && answer["state"] == "unauthenticated")
        #expect(answer["end_session_url"] == nil && answer["end_session_error"] == nil)
        let away = try await APIHouse()
        away.provider.goAway()
        let other = await away.ask("DELETE", "/v1/accounts/work/session?end_session=true")
        #expect(other.status == 200 && other["end_session_error"]?["code"] == "provider_unreachable", "\(other.text)")
    }
}
