// The daemon where the system gives a process few descriptors.

import TestSupport
import Testing

@Suite struct `A daemon with few descriptors` {
    private static let question = Stage.request("GET", "/v1/status")

    /// Starts the daemon with a limit that it cannot raise.
    private func start(_ descriptors: Int, _ stage: Stage) throws -> Program {
        let command = "ulimit -n \(descriptors) && exec \"$@\""
        let daemon = [Programs.path("ringbackd"), "--state", stage.state]
        return try stage.start("/bin/sh", ["-c", command, "sh"] + daemon)
    }

    @Test func `keeps half of 400 for itself, and lets 200 programs stay connected`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let daemon = try start(400, stage)
            var connections = [try await Connection.first(to: .unix(stage.socket))]
            for _ in 1..<200 { connections.append(try stage.connect()) }
            for _ in 0..<2 {
                for connection in connections {
                    await connection.send(Self.question)
                    #expect(try await connection.answer().status == 200)
                }
            }
            // For one more, the one that was idle for longest gives way.
            let another = try stage.connect()
            await another.send(Self.question)
            #expect(try await another.answer().status == 200)
            #expect(try await connections[0].readToEnd() == "")
            await connections[1].send(Self.question)
            #expect(try await connections[1].answer().status == 200)
            #expect(await daemon.stop())
        }
    }

    @Test func `says what the system refused if there is no descriptor for the sockets' thread`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            for limit in [12, 13] {
                let ended = try await start(limit, stage).end()
                #expect(ended.status == 71, "\(limit): \(ended)")
                let sentence = "cannot listen at \(stage.socket): "
                #expect(ended.err.contains(sentence) && ended.err.contains("Too many open files"), "\(limit): \(ended)")
            }
        }
    }
}
