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

    @Test func `starts another helper when one has died`() async throws {
        let connection = try HelperConnection.start(executable: "/bin/sleep", arguments: ["600"])
        defer { end(connection) }
        let first = try #require(connection.processID)
        kill(first, SIGKILL)
        await waitForEnd(of: first)
        await #expect(throws: HelperError.timedOut) {
            try await connection.clientSecret(account: "mail", timeout: .milliseconds(50))
        }
        let second = try #require(connection.processID)
        #expect(second != first)
    }

    @Test func `gives up on a helper that always dies`() async throws {
        let connection = try HelperConnection.start(executable: "/bin/false", arguments: [])
        await #expect(throws: HelperError.ended) { try await connection.clientSecret(account: "mail") }
    }

    @Test func `gives up on a helper that speaks another protocol`() async throws {
        let garbage = try HelperConnection.start(
            executable: "/bin/sh", arguments: ["-c", "echo hello >&3; exec sleep 600"])
        let garbled = try #require(garbage.processID)
        await #expect(throws: HelperError.ended) { try await garbage.clientSecret(account: "mail") }
        #expect(garbage.processID != garbled)
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
