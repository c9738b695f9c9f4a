import Glibc
import RingbackBase
import TestSupport
import Testing

/// A thousand connections of one process: each sends a byte, and another one in every round, and never a request.
private let crowdScript = """
    trap '' PIPE
    ulimit -n 2048 || exit 1
    crowd=()
    for ((i = 0; i < 1000; i++)); do
        exec {one}<>"/dev/tcp/127.0.0.1/$1" || exit 1
        printf G >&$one
        crowd+=($one)
    done
    echo "all are here"
    while :; do
        for one in "${crowd[@]}"; do printf x >&$one; done 2>/dev/null
        echo round
    done
    """

@Suite struct `A hostile callback` {
    @Test(.enabled(if: Stranger.isPossible, Stranger.reason))
    func `LB-10: of another user counts where the configuration names them, for that account alone`() async throws {
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

    @Test func `LB-16: a crowd of a thousand that dribbles does not keep the genuine one out`() async throws {
        try await Stage.play { stage in
            let port = try await CallbackPort(stage)
            let crowd = try stage.start(
                "/bin/bash", ["-c", crowdScript, "crowd", "\(port.number)"])
            _ = try await crowd.line("the crowd's arrival", within: Bound.seconds(300)) { $0 == "all are here" }
            try await port.expectGenuineCompletes()
            // They were not waited for: they dribble on.
            let rounds = crowd.output.value.lines.count
            _ = try await crowd.output.first("another round") { $0.lines.count > rounds ? true : nil }
            #expect(crowd.endedStatus == nil)
        }
    }

    @Test
    func `LB-09, LB-07, NAT-05, NAT-09: it can be sent from this machine only, to the address that was asked for`()
        async throws
    {
        try await CallbackPort.attack { port in
            #expect(ListeningPorts.addresses(of: port.number) == ["0100007F"])
            #expect(throws: SystemError.self) { try Connection(to: .ipv6(port.number)) }
            let status = try await port.stage.api("GET", "/v1/status")
            #expect(status["listeners"] == [.string("127.0.0.1:\(port.number)")])
        }
    }

    @Test func `NAT-08: finds the port closed a minute after the last flow`() async throws {
        try await Stage.play { stage in
            let port = try await CallbackPort(stage)
            let other = try await stage.begin("home")
            #expect(try LocalURL(other.redirectURI).port == port.number)
            try await port.expectGenuineCompletes()
            // Somebody still waits.
            #expect(try await port.send(port.request("GET", "/done")).status == 200)
            let ended = try await stage.api("DELETE", "/v1/flows/\(other.id)")
            #expect(ended["status"]?.string == "cancelled")
            // The last page is still served; then nobody is there. Each try is ended by the listener itself, which
            // gives a connection 5 s to send its request.
            #expect(try await port.send(port.request("GET", "/done")).status == 200)
            var attempts = 0
            while let connection = try? Connection(to: .ipv4(port.number)) {
                attempts += 1
                #expect(attempts < 16, "the port is still open")
                if attempts == 16 { break }
                #expect(try await connection.answer(within: Bound.seconds(30)).status == 408)
            }
            #expect(ListeningPorts.addresses(of: port.number) == [])
            #expect(try await stage.api("GET", "/v1/status")["listeners"]?.array == [])
            #expect(try await stage.token() != nil)
        }
    }
}
