import Synchronization
import Testing

@testable import RingbackClient

/// Opens once; whoever waits goes on.
final class Gate: Sendable {
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation
    init() { (stream, continuation) = AsyncStream.makeStream() }
    func open() { continuation.finish() }
    func wait() async { for await _ in stream {} }
}

@Suite(.timeLimit(.minutes(5))) struct `Auth state changes` {
    private static let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

    private static func event(_ id: Int, _ name: String, _ state: String, account: String = "work") -> String {
        "id: \(id)\nevent: \(name)\ndata: {\"account\":\"\(account)\",\"state\":\"\(state)\",\"at\":1}\n\n"
    }

    @Test func `each event comes with the session as it is then`() async throws {
        let daemon = try FakeDaemon { request in
            if request.hasPrefix("GET /v1/events?account=work ") {
                return .hold(
                    Self.head + Self.event(1, "initial_session", "unauthenticated")
                        + Self.event(2, "signed_in", "authenticated", account: "other") + ": comment\n\n"
                        + Self.event(3, "signed_in", "authenticated") + Self.event(4, "signed_out", "unauthenticated"))
            }
            return .json(200, #"{"account":"work","access_token":"t","subject":"alice"}"#)
        }
        var seen: [String] = []
        for try await (event, session) in daemon.client.authStateChanges("work") {
            seen.append("\(event.rawValue) \(session?.subject ?? "-")")
            if event == .signedOut { break }
        }
        #expect(seen == ["initial_session -", "signed_in alice", "signed_out -"])
    }

    @Test func `after a restart of the daemon it takes up where it was`() async throws {
        let connections = Mutex(0)
        let daemon = try FakeDaemon { _ in
            let number = connections.withLock { count in
                count += 1
                return count
            }
            // The first connection ends, as with a daemon that does; the second finds a daemon that refuses.
            switch number {
            case 1: return .bytes(Self.head + Self.event(41, "initial_session", "unauthenticated"))
            case 2: return .json(503, #"{"code":"shutting_down"}"#)
            default: return .hold(Self.head + Self.event(42, "sign_in_failed", "unauthenticated"))
            }
        }
        var seen: [AuthEvent] = []
        for try await (event, _) in daemon.client.authStateChanges("work") {
            seen.append(event)
            if event == .signInFailed { break }
        }
        #expect(seen == [.initialSession, .signInFailed])
        #expect(!daemon.requests[0].contains("Last-Event-ID"))
        #expect(daemon.requests[2].contains("Last-Event-ID: 41\r\n"))
    }

    @Test(arguments: ["account_not_found", "policy_denied"])
    func `it throws what waiting cannot mend`(code: String) async throws {
        let daemon = try FakeDaemon { _ in .json(404, "{\"code\":\"\(code)\"}") }
        let client = daemon.client
        for (account, kind) in [("work", RingbackError.Kind(rawValue: code)), ("No Name", .accountNotFound)] {
            let error = await #expect(throws: RingbackError.self) {
                for try await _ in client.authStateChanges(account) { Issue.record("an event") }
            }
            #expect(error?.kind == kind)
        }
    }

    @Test func `a cancelled consumer is let go, even without a daemon`() async {
        let changes = BrokerClient(application: "test", socket: "/tmp/there-is-no-such-directory/s")
            .authStateChanges("work")
        let consumer = Task { for try await _ in changes {} }
        consumer.cancel()
        #expect((try? await consumer.value) != nil)
    }

    @Test func `the end of a session comes with it`() async throws {
        let ending = Self.event(2, "session_ending", "authenticated").replacing("\"at\":1", with: "\"ends_at\":77")
        let daemon = try FakeDaemon { request in
            request.hasPrefix("GET /v1/events")
                ? .hold(Self.head + Self.event(1, "initial_session", "authenticated") + ending)
                : .json(200, #"{"account":"work","access_token":"t","subject":"alice"}"#)
        }
        var seen: [Int?] = []
        for try await (event, session) in daemon.client.authStateChanges("work") {
            seen.append(session?.endsAt?.secondsSince1970)
            if event == .sessionEnding { break }
        }
        #expect(seen == [nil, 77])
    }

    @Test func `a session that cannot be had now is nil beside the event`() async throws {
        let daemon = try FakeDaemon { request in
            request.hasPrefix("GET /v1/events")
                ? .hold(Self.head + Self.event(1, "initial_session", "authenticated"))
                : .json(503, #"{"code":"provider_unreachable"}"#)
        }
        for try await (event, session) in daemon.client.authStateChanges("work") {
            #expect(event == .initialSession && session == nil)
            break
        }
    }
}
