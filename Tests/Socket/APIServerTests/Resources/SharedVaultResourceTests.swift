import LocalHTTP
import RingbackAPI
import RingbackBase
import SessionVault
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

/// What callers are told while the database of a vault that hosts share is away, or another host is at a session.
@Suite struct `A shared vault that cannot be used now` {
    private let target = "/v1/accounts/work/session"

    private func expired() async throws -> (APIHouse, RecordingVault) {
        let vault = RecordingVault()
        let house = try await APIHouse(vault: vault)
        try await house.signIn()
        house.clock.advance(by: 3_600)
        return (house, vault)
    }

    @Test func `is 503 with a code of its own, and nobody is told to sign in`() async throws {
        let (house, vault) = try await expired()
        await vault.failAnnouncing(with: .unreachable(.databaseAway(.timedOut)))
        let first = await house.ask("GET", target)
        #expect(first.status == 503 && first.code == "vault_unreachable", "\(first.text)")
        #expect(first["recovery"] == "retry" && first["title"] == "The shared vault cannot be used now")
        #expect(
            first["detail"]?.string == "The vault's database cannot be reached: It did not answer in time. Nothing was "
                + "lost: try again.")
        let second = await house.ask("GET", target)
        #expect(second.code == "vault_unreachable", "\(second.text)")
        let seconds = try #require(second["retry_after"]?.integer)
        #expect(second.response.fields["Retry-After"] == String(seconds) && (1...30).contains(seconds))
        let refresh = await house.ask("POST", "/v1/accounts/work/refresh", #"{"force":true}"#)
        #expect(refresh.status == 503 && refresh.code == "vault_unreachable", "\(refresh.text)")
        let account = await house.ask("GET", "/v1/accounts/work")
        #expect(account["state"] == "authenticated" && account["error"]?["code"] == "vault_unreachable")
        await vault.failAnnouncing(with: nil)
        house.clock.advance(by: 31)
        #expect(await house.ask("GET", target).status == 200)
        #expect(await house.ask("GET", "/v1/accounts/work")["error"] == nil)
    }

    @Test func `says how long another host may be at the session`() async throws {
        let (house, vault) = try await expired()
        await vault.answer(.wait(.milliseconds(599_500)))
        let answer = await house.ask("GET", target)
        #expect(answer.status == 503 && answer.code == "vault_unreachable", "\(answer.text)")
        #expect(answer["retry_after"] == 600 && answer.response.fields["Retry-After"] == "600")
    }

    @Test func `is told on an exposed socket without what the machine is made of`() throws {
        let error = BrokerError.vaultUnreachable(.vault(.unreachable(.databaseRefused(.otherSchema(9)))))
        let problem = Problem(elsewhere: error, language: .english)
        #expect(problem.code == .vaultUnreachable)
        #expect(problem.detail == "The vault cannot be used at the moment. Nothing was lost: try again.")
    }
}
