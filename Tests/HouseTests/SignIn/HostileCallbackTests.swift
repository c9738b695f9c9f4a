import Glibc
import RingbackBase
import TestSupport
import Testing

@Suite struct `A hostile callback` {
    @Test(.enabled(if: Stranger.isPossible, Stranger.reason))
    func `LB-10: a callback of another user counts only for an account that names the user`() async throws {
        let configuration = Stage.twoAccounts.replacing(
            "[accounts.home]", with: "callback_peer_uids = [\(Stranger.namedUID)]\n\n[accounts.home]")
        try await Stage.play(configuration) { stage in
            let home = try await CallbackPort(stage, "home")
            let refused = try await stage.run(
                asUser: Stranger.namedUID, script: Stranger.asking, "\(home.number)",
                home.request(fields: Browser.navigation))
            #expect(AnswerHead(refused.out).status == 404, "\(refused)")
            // They do not see the pages either that a flow leaves behind.
            for target in ["/done", "/failed", "/"] {
                let page = try await stage.run(
                    asUser: Stranger.namedUID, script: Stranger.asking, "\(home.number)", home.request("GET", target))
                #expect(AnswerHead(page.out).status == 404, "\(target): \(page)")
            }
            let work = try await CallbackPort(stage, "work")
            let taken = try await stage.run(
                asUser: Stranger.namedUID, script: Stranger.asking, "\(work.number)",
                work.request(fields: Browser.navigation))
            #expect(AnswerHead(taken.out).status == 303, "\(taken)")
            // Their browser is sent on to a page, which they see too.
            let page = try await stage.run(
                asUser: Stranger.namedUID, script: Stranger.asking, "\(work.number)", work.request("GET", "/done"))
            #expect(AnswerHead(page.out).status == 200, "\(page)")
            #expect(try await stage.account("work")["state"]?.string == "authenticated")
            #expect(try await stage.account("home")["state"]?.string == "authenticating")
        }
    }

    @Test
    func `LB-09, LB-07, NAT-05, NAT-09: the callback port listens at the redirect URI's address`() async throws {
        try await CallbackPort.attack { port in
            #expect(ListeningPorts.addresses(of: port.number) == ["0100007F"])
            #expect(throws: SystemError.self) { try Connection(to: .ipv6(port.number)) }
            let status = try await port.stage.api("GET", "/v1/status")
            #expect(status["listeners"] == [.string("127.0.0.1:\(port.number)")])
        }
    }
}
