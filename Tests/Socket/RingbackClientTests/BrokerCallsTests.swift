import Glibc
import RingbackAPI
import RingbackBase
import Synchronization
import Testing

@testable import RingbackClient

@Suite(.timeLimit(.minutes(5))) struct `Broker calls` {
    @Test func `a call sends one request and gives the answer's JSON`() throws {
        let daemon = try FakeDaemon { _ in .json(200, #"{"version":"1"}"#) }
        var calls = BrokerCalls(daemon)
        calls.language = "ru"
        calls.client = 7
        #expect(try calls.call(.reload, body: ["a": 1])["version"]?.string == "1")
        let request = try #require(daemon.requests.first)
        #expect(request.hasPrefix("POST /v1/reload HTTP/1.1\r\nHost: ringback\r\n"))
        #expect(request.contains("Ringback-Application: test\r\n"))
        #expect(request.contains("Accept-Language: ru\r\n") && request.contains("Ringback-Client: 7\r\n"))
        #expect(request.hasSuffix("Content-Length: 7\r\n\r\n{\"a\":1}"))
    }

    @Test func `a problem document becomes the error, with the wait from the header if it has none`() throws {
        let body =
            #"{"code":"rate_limited","status":429,"title":"t","detail":"d","recovery":"retry","user_message":"u"}"#
        let daemon = try FakeDaemon { _ in
            .bytes("HTTP/1.1 429 X\r\nRetry-After: 7\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
        }
        let failure = #expect(throws: RingbackError.self) { try BrokerCalls(daemon).call(.getStatus) }
        #expect(failure?.kind == .rateLimited)
        #expect(failure?.detail == "d")
        #expect(failure?.userMessage == "u")
        #expect(failure?.recovery == .retry)
        #expect(failure?.retryAfter == 7)
    }

    @Test func `an answer that is text is given as it is, and a refusal as one`() throws {
        let daemon = try FakeDaemon { _ in
            .bytes("HTTP/1.1 200 X\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: 4\r\n\r\na 1\n")
        }
        #expect(try BrokerCalls(daemon).text(.getMetrics) == "a 1\n")
        #expect(daemon.requests.first?.contains("Accept: text/plain, application/problem+json\r\n") == true)
        let refusing = try FakeDaemon { _ in .json(404, #"{"code":"not_found"}"#) }
        #expect(kind { () throws(RingbackError) in try BrokerCalls(refusing).text(.getMetrics) } == "not_found")
        let odd = try FakeDaemon { _ in .json(200, "{}") }
        #expect(kind { () throws(RingbackError) in try BrokerCalls(odd).text(.getMetrics) } == .badResponse)
    }

    @Test func `the status tells of the vault and of what is pending, if the daemon does`() throws {
        let full = try DaemonStatus(reading: [
            "version": "1", "vault": ["locked": true, "reason": "why"], "pending_revocations": 2,
        ])
        #expect(full.isVaultLocked && full.vaultLockReason == "why" && full.pendingRevocations == 2)
        let bare = try DaemonStatus(reading: ["version": "1"])
        #expect(!bare.isVaultLocked && bare.vaultLockReason == nil && bare.pendingRevocations == 0)
    }

    @Test func `a code of a newer daemon is kept as it is`() throws {
        let daemon = try FakeDaemon { _ in .json(418, #"{"code":"teapot","recovery":"brew"}"#) }
        #expect(kind { () throws(RingbackError) in try BrokerCalls(daemon).call(.getStatus) } == "teapot")
    }

    @Test func `every code of the API is a kind of the same name`() {
        for code in ErrorCode.table.keys {
            #expect(RingbackError(Problem(code)).kind.rawValue == code.rawValue)
        }
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnope", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}", "SSH-2.0-x\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n{}", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n", "HTTP/1.1 200 OK\r\nContent",
        "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"a\":1,\"a\":2}\n",
    ])
    func `an answer that is not what the API promises is a bad answer`(text: String) throws {
        let daemon = try FakeDaemon { _ in .bytes(text) }
        #expect(kind { () throws(RingbackError) in try BrokerCalls(daemon).call(.getStatus) } == .badResponse)
    }

    @Test func `without a daemon the kind is no_daemon`() {
        let calls = BrokerCalls(socket: "/tmp/there-is-no-such-directory/s", application: "test")
        #expect(kind { () throws(RingbackError) in try calls.call(.getStatus) } == .noDaemon)
        let long = BrokerCalls(socket: "/" + String(repeating: "x", count: 200), application: "test")
        #expect(kind { () throws(RingbackError) in try long.call(.getStatus) } == .noDaemon)
    }

    @Test func `a connection closed without a byte is no daemon`() throws {
        let daemon = try FakeDaemon { _ in .bytes("") }
        #expect(kind { () throws(RingbackError) in try BrokerCalls(daemon).call(.getStatus) } == .noDaemon)
    }

    @Test func `a daemon that does not answer costs the bound`() throws {
        let daemon = try FakeDaemon { _ in .hold("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{") }
        let kind = kind { () throws(RingbackError) in
            try BrokerCalls(daemon).call(.getStatus, timeout: .milliseconds(50))
        }
        #expect(kind == .timedOut)
    }

    @Test func `an interruption ends a call that waits, and every later one`() throws {
        let interruption = try Interruption()
        let daemon = try FakeDaemon { _ in
            interruption.interrupt()
            return .hold("")
        }
        let calls = BrokerCalls(daemon, interruption)
        for _ in 0..<2 {
            #expect(kind { () throws(RingbackError) in try calls.call(.getStatus) } == .cancelled)
        }
    }

    @Test func `what an app calls itself cannot become a header`() {
        #expect(BrokerCalls.fieldText("a\r\nX: y") == "a??X: y")
        #expect(BrokerCalls.fieldText(String(repeating: "x", count: 100)).utf8.count == 64)
    }

    @Test(
        arguments: [
            (["LANG": "ru_RU.UTF-8"], "ru"), (["LANG": "ru_RU", "LC_ALL": "en_GB"], "en"), (["LANG": "C"], nil),
            (["LANG": "C.UTF-8"], nil), ([:], nil),
        ] as [([String: String], String?)])
    func `the person's language comes from the environment`(environment: [String: String], expected: String?) {
        #expect(BrokerCalls.language { environment[$0] } == expected)
    }
}

@Suite(.timeLimit(.minutes(5))) struct `The watch over a flow` {
    private func isReadable(_ descriptor: Int32, milliseconds: Int32 = 60_000) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&entry, 1, milliseconds) > 0
    }

    @Test func `becomes readable when the flow has ended`() throws {
        let daemon = try FakeDaemon { _ in .json(200, #"{"id":"f","account":"a","status":"completed"}"#) }
        let watch = try FlowWatch(BrokerCalls(socket: daemon.path, application: "test"), flow: "f")
        #expect(isReadable(watch.descriptor))
        #expect(try watch.outcome?.0.status == .completed)
    }

    @Test func `has nothing while it is pending, and can be stopped`() throws {
        let daemon = try FakeDaemon { _ in .hold("") }
        let watch = try FlowWatch(BrokerCalls(socket: daemon.path, application: "test"), flow: "f")
        #expect(try !isReadable(watch.descriptor, milliseconds: 0) && watch.outcome == nil)
        watch.stop()
        #expect(isReadable(watch.descriptor))
        #expect(throws: RingbackError.self) { try watch.outcome }
    }

    @Test func `gives up at the caller's own bound`() throws {
        let daemon = try FakeDaemon { _ in .json(200, #"{"id":"f","account":"a","status":"pending"}"#) }
        let watch = try FlowWatch(BrokerCalls(socket: daemon.path, application: "test"), flow: "f", until: .now)
        #expect(isReadable(watch.descriptor))
        #expect(try watch.outcome?.0.status == .pending)
    }

    @Test func `without a daemon says so`() throws {
        let watch = try FlowWatch(BrokerCalls(socket: "/nowhere/s", application: "test"), flow: "f")
        #expect(isReadable(watch.descriptor))
        #expect(throws: RingbackError.self) { try watch.outcome }
    }
}
