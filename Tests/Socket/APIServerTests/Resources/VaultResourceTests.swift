import LocalHTTP
import Records
import RingbackBase
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `The vault on the socket` {
    private let session = "/v1/accounts/work/session"

    private func house() async throws -> APIHouse {
        let house = try await APIHouse(vault: LockingVault())
        try await house.signIn()
        return house
    }

    @Test func `locked, it serves nothing; opened, it goes on where it was`() async throws {
        let house = try await house()
        #expect(await house.ask("GET", session).status == 200)
        weak let encoding = house.broker.snapshot.current("work")?.entry.encoding
        #expect(encoding != nil)
        let locked = await house.ask("POST", "/v1/vault/lock")
        #expect(locked.status == 200)
        #expect(locked["locked"] == true && locked["reason"]?.string?.isEmpty == false)
        // Not in any corner of the hot path either.
        #expect(encoding == nil)
        for immediate in [true, false] {
            let answer = await house.ask("GET", session, immediate: immediate)
            #expect(answer.status == 423 && answer.code == "vault_locked")
            #expect(answer["recovery"] == "retry" && answer["detail"]?.string?.contains("locked") == true)
            #expect(answer["user_message"] == nil)
        }
        let status = await house.ask("GET", "/v1/status")
        #expect(status["vault"] == locked.json)
        let opened = await house.ask("POST", "/v1/vault/unlock", #"{"passphrase":"canary-passphrase"}"#)
        #expect(opened.status == 200 && opened["locked"] == false && opened["reason"] == nil)
        #expect(await house.ask("GET", session)["access_token"] == "access-1")
        #expect(house.provider.tokenRequests == 1)
    }

    @Test func `a wrong passphrase is said so, then slowed down, and never repeated`() async throws {
        let house = try await house()
        await house.ask("POST", "/v1/vault/lock")
        var statuses: [Int] = []
        for number in 0..<7 {
            let answer = await house.ask("POST", "/v1/vault/unlock", "{\"passphrase\":\"canary-wrong-\(number)\"}")
            statuses.append(answer.status)
            #expect(!answer.text.contains("canary-wrong"))
            if answer.status == 429 {
                #expect(answer.code == "rate_limited")
                #expect(answer["retry_after"]?.integer.map { (1...60).contains($0) } == true)
                #expect(answer.response.fields["Retry-After"] != nil)
            } else {
                #expect(answer.code == "invalid_credentials")
            }
        }
        #expect(statuses == [401, 401, 401, 401, 401, 429, 429])
        house.clock.advance(by: 61)
        #expect(await house.ask("POST", "/v1/vault/unlock", #"{"passphrase":"canary-passphrase"}"#).status == 200)
        await house.records.audit.flush()
        #expect(!house.folder.text.contains("canary"))
        #expect(house.folder.text.contains("unlock_refused"))
    }

    @Test func `a new key source is taken, or refused with the reason`() async throws {
        let house = try await house()
        let moved = await house.ask(
            "POST", "/v1/vault/rekey", #"{"key_source":"passphrase","passphrase":"canary-new"}"#)
        #expect(moved.status == 200 && moved["key_source"] == "passphrase")
        let refused = await house.ask("POST", "/v1/vault/rekey", #"{"key_source":"memory"}"#)
        #expect(refused.status == 409 && refused.code == "state_conflict")
        for body in [
            "{}", #"{"key_source":"passphrase"}"#, #"{"key_source":"none"}"#, #"{"key_source":1}"#,
            #"{"key_source":"auto","passphrase":""}"#,
        ] {
            let answer = await house.ask("POST", "/v1/vault/rekey", body)
            #expect(answer.status == 400 && answer.code == "validation_failed", "\(body)")
        }
        let odd = await house.ask("POST", "/v1/vault/unlock", #"{"passphrase":["canary-odd"]}"#)
        #expect(odd.status == 400 && !odd.text.contains("canary"))
        await house.ask("POST", "/v1/vault/lock")
        #expect(await house.ask("POST", "/v1/vault/unlock", #"{"passphrase":"canary-new"}"#).status == 200)
    }

    @Test func `tells that a passphrase is to be chosen, and that the configuration names another source`() async throws
    {
        let vault = LockingVault()
        let house = try await APIHouse(vault: vault)
        #expect(await house.ask("GET", "/v1/status")["vault"]?["needs_new_passphrase"] == nil)
        vault.becomeNew()
        #expect(await house.ask("POST", "/v1/vault/lock")["needs_new_passphrase"] == true)
        await house.ask("POST", "/v1/vault/unlock", #"{"passphrase":"canary-passphrase"}"#)
        let moved = await house.ask("POST", "/v1/vault/rekey", #"{"key_source":"key-file"}"#)
        #expect(moved["key_source"] == "key-file" && moved["other_key_source"] == "passphrase")
        let back = await house.ask("POST", "/v1/vault/rekey", #"{"key_source":"passphrase","passphrase":"canary"}"#)
        #expect(back["other_key_source"] == nil)
    }

    @Test func `knows when a person asks for its key, and when the daemon does`() async throws {
        let vault = LockingVault()
        let house = try await APIHouse(vault: vault)
        await house.ask("POST", "/v1/vault/lock")
        await house.ask("POST", "/v1/vault/unlock", #"{"passphrase":"canary-passphrase"}"#)
        #expect(vault.openings == [false, true])
    }

    @Test func `one that is in memory alone cannot be locked`() async throws {
        let house = try await APIHouse()
        try await house.signIn()
        let answer = await house.ask("POST", "/v1/vault/lock")
        #expect(answer.status == 409 && answer.code == "state_conflict")
        #expect(await house.ask("GET", session).status == 200)
    }
}
