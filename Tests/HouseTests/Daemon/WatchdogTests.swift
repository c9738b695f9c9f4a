import Glibc
import Testing

@Suite struct `The watchdog` {
    @Test func `is told again and again that the daemon lives`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            try await stage.startDaemon(environment: ["WATCHDOG_USEC": "300000"])
            // Three words and more: not one for the start alone.
            for _ in 0..<4 { try await stage.notices.wait(for: "WATCHDOG=1", after: stage.notices.count) }
            #expect(try await stage.stopDaemon().status == 0)
        }
    }

    @Test(arguments: [
        ["WATCHDOG_USEC": "30000", "WATCHDOG_PID": "1"], ["WATCHDOG_USEC": "soon"], ["WATCHDOG_USEC": "-5"],
        ["WATCHDOG_USEC": "0"], [:],
    ]) func `of another process, or of nobody, is told nothing`(variables: [String: String]) async throws {
        try await Stage.play(startsDaemon: false) { stage in
            try await stage.startDaemon(environment: variables)
            try await stage.ringback("reload", status: 0)
            // Ready, reloading, ready again: a word for the watchdog would have come before.
            try await stage.notices.wait(for: "READY=1", after: 2)
            #expect(stage.notices.count == 3)
        }
    }
}
