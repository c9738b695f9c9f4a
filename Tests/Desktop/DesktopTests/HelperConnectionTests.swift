import Glibc
import RingbackBase
import Testing

@testable import Desktop

@Suite(.timeLimit(.minutes(5))) struct `The connection to the helper` {
    @Test func `says why a helper cannot be started`() {
        #expect(throws: HelperError.notStarted(reason: "No such file or directory")) {
            try HelperConnection.start(executable: "/nonexistent/ringbackd", arguments: [])
        }
    }

    @Test func `tells who waits that the helper ended`() async throws {
        // It says when the request has arrived, and answers nothing.
        let line = try LifeLine()
        let script = "head -c 1 <&3 >/dev/null; echo >'\(line.path)'; exec sleep 600"
        let connection = try HelperConnection.start(executable: "/bin/sh", arguments: ["-c", script])
        defer { end(connection) }
        let process = try #require(connection.processID)
        let waiting = Task { try await connection.clientSecret(account: "mail") }
        #expect(await line.hasBegun())
        kill(process, SIGKILL)
        let result = await waiting.result
        #expect(throws: HelperError.ended) { try result.get() }
    }

    @Test func `a helper that has ended is noticed without a request, and no request starts another`() async throws {
        let connection = try HelperConnection.start(executable: "/bin/sleep", arguments: ["600"])
        async let end: Void = connection.waitUntilEnded()
        kill(try #require(connection.processID), SIGKILL)
        await end
        await #expect(throws: HelperError.ended) { try await connection.clientSecret(account: "mail") }
        #expect(connection.processID == nil)
    }

    @Test func `the helper starts a relay with the other end of the daemon's socket`() async throws {
        // A relay that tells its arguments, and ends with its socket.
        let relay = "/tmp/ringback-relay-\(getpid())-\(UInt64.random(in: 0 ... .max))"
        let script = "#!/bin/sh\necho \"$*\" >&3\nexec head -c 1 <&3\n"
        let file = unsafe open(relay, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o700)
        _ = unsafe write(file, script, script.utf8.count)
        close(file)
        defer { unsafe unlink(relay) }
        let helper = try InnerHelper(relay: relay)
        let companion = try await helper.connection.startRelay(daemon: "/run/a.sock")
        var buffer = [UInt8](repeating: 0, count: 256)
        let text = await blocking { [socket = companion.socket] () -> String in
            var buffer = [UInt8](repeating: 0, count: 256)
            let count = unsafe recv(socket, &buffer, buffer.count, 0)
            return String(decoding: buffer[..<max(count, 0)], as: UTF8.self)
        }
        #expect(text == "--exposed --daemon /run/a.sock\n")
        companion.kill()
        #expect(unsafe recv(companion.socket, &buffer, buffer.count, 0) == 0, "nobody else holds its socket")
        companion.end()
    }

    @Test func `a relay that cannot be started is named`() async throws {
        let helper = try InnerHelper(relay: "/nonexistent/ringback-relay")
        await #expect(
            throws: HelperError.programFailed(
                reason: "/nonexistent/ringback-relay was not started: No such file or directory")
        ) { try await helper.connection.startRelay(daemon: "/run/a.sock") }
    }

    @Test func `gives up on a helper that always dies`() async throws {
        let connection = try HelperConnection.start(executable: "/bin/false", arguments: [])
        await #expect(throws: HelperError.ended) { try await connection.clientSecret(account: "mail") }
    }

    @Test func `gives up on a helper that speaks another protocol`() async throws {
        let garbage = try HelperConnection.start(
            executable: "/bin/sh", arguments: ["-c", "echo hello >&3; exec sleep 600"])
        await #expect(throws: HelperError.ended) { try await garbage.clientSecret(account: "mail") }
        let echo = try HelperConnection.start(executable: "/bin/sh", arguments: ["-c", "exec cat <&3 >&3"])
        await #expect(throws: HelperError.ended) { try await echo.clientSecret(account: "mail") }
    }

    @Test func `returns at its own bound and stays usable`() async throws {
        let helper = try InnerHelper(commands: ["slow": ["/bin/sleep", "600"], "quick": ["/bin/echo", "now"]])
        await #expect(throws: HelperError.timedOut) {
            try await helper.connection.clientSecret(account: "slow", timeout: .milliseconds(50))
        }
        #expect(try await helper.connection.clientSecret(account: "quick").revealed() == "now")
    }

    @Test func `asks nothing for a caller that was cancelled`() async throws {
        let helper = try InnerHelper(commands: ["slow": ["/bin/sleep", "600"]])
        let task = Task {
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            return try await helper.connection.clientSecret(account: "slow")
        }
        await #expect(throws: HelperError.cancelled) { try await task.value }
    }
}
