import Testing

@testable import RingbackClient

@Suite struct `Socket place` {
    @Test(
        arguments: [
            ("/s", ["RINGBACK_SOCK": "/e"], "/s"), (nil, ["RINGBACK_SOCK": "/e", "XDG_RUNTIME_DIR": "/run"], "/e"),
            (nil, ["XDG_RUNTIME_DIR": "/run/user/7"], "/run/user/7/ringback/ringback.sock"),
        ] as [(String?, [String: String], String)])
    func `what is named goes before RINGBACK_SOCK, and that before XDG_RUNTIME_DIR`(
        stated: String?, environment: [String: String], expected: String
    ) throws {
        #expect(try SocketPlace.path(stated: stated, environment: { environment[$0] }) == expected)
    }

    @Test func `a machine without systemd's logins is told of none`() {
        #expect(SocketPlace.advice(hasSystemd: true).contains("/run/user/"))
        #expect(!SocketPlace.advice(hasSystemd: false).contains("/run/user/"))
        #expect(!SocketPlace.advice(hasSystemd: false).contains("login"))
    }

    @Test(arguments: [[:], ["XDG_RUNTIME_DIR": ""], ["XDG_RUNTIME_DIR": "tmp"], ["RINGBACK_SOCK": ""]])
    func `without a place the error names XDG_RUNTIME_DIR`(environment: [String: String]) {
        do throws(RingbackError) {
            _ = try SocketPlace.path(stated: nil, environment: { environment[$0] })
            Issue.record("no error")
        } catch {
            #expect(error.kind == .noDaemon)
            #expect(error.detail.contains("XDG_RUNTIME_DIR"))
        }
    }
}
