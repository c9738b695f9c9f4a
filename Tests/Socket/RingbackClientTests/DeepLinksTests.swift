import RingbackBase
import Synchronization
import Testing

@testable import RingbackClient

@Suite(.timeLimit(.minutes(5))) struct `Deep links for an app` {
    private static let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: listening\n\n"

    private static func link(_ id: Int) -> String {
        "event: deep_link\nid: \(id)\ndata: {\"id\":\"\(id)\",\"scheme\":\"coin\",\"url\":\"coin://\(id)\",\"at\":7}\n\n"
    }

    private static let replaced = "event: listener_replaced\ndata: {\"scheme\":\"coin\",\"at\":7}\n\n"

    @Test func `come in order, until another program listens`() async throws {
        let daemon = try FakeDaemon { _ in
            .hold(
                Self.head + Self.link(1) + "event: news\ndata: {}\n\n" + "event: deep_link\ndata: no JSON\n\n"
                    + Self.link(2) + Self.replaced + Self.link(3))
        }
        var seen: [String] = []
        for try await link in daemon.client.deepLinks("coin") {
            #expect(link.scheme == "coin" && link.at.secondsSince1970 == 7)
            seen.append("\(link.id) \(link.url)")
        }
        #expect(seen == ["1 coin://1", "2 coin://2"])
        #expect(daemon.requests.count == 1)
        #expect(daemon.requests[0].hasPrefix("GET /v1/deep-links?scheme=coin HTTP/1.1\r\n"))
    }

    @Test func `come once each, when the connection breaks and nobody has acknowledged them`() async throws {
        let connections = Mutex(0)
        let daemon = try FakeDaemon { _ in
            let number = connections.withLock { count in
                count += 1
                return count
            }
            switch number {
            case 1: return .bytes(Self.head + Self.link(1) + Self.link(2))
            case 2: return .json(503, #"{"code":"shutting_down"}"#)
            default: return .hold(Self.head + Self.link(1) + Self.link(2) + Self.link(3))
            }
        }
        var seen: [String] = []
        for try await link in daemon.client.deepLinks("coin") {
            seen.append(link.id)
            if seen.count == 3 { break }
        }
        #expect(seen == ["1", "2", "3"])
    }

    @Test(arguments: ["not_found", "validation_failed", "policy_denied"])
    func `end with what waiting cannot mend`(code: String) async throws {
        let daemon = try FakeDaemon { _ in .json(404, "{\"code\":\"\(code)\",\"detail\":\"why\"}") }
        var links = daemon.client.deepLinks("coin").makeAsyncIterator()
        let error = await #expect(throws: RingbackError.self) { _ = try await links.next() }
        #expect(error?.kind.rawValue == code)
        #expect(try await links.next() == nil)
    }

    @Test func `are acknowledged by name; one that is not kept any more is no error`() async throws {
        let daemon = try FakeDaemon { request in
            switch request.prefix(while: { $0 != "H" }) {
            case "POST /v1/deep-links/1/ack ": .json(200, #"{"id":"1","acknowledged":true}"#)
            case "POST /v1/deep-links/2/ack ": .json(404, #"{"code":"not_found"}"#)
            default: .json(403, #"{"code":"policy_denied"}"#)
            }
        }
        func link(_ id: String) throws -> DeepLink {
            try DeepLink(reading: ["id": .string(id), "scheme": "coin", "url": "coin://x"])
        }
        try await daemon.client.acknowledge(try link("1"))
        try await daemon.client.acknowledge(try link("2"))
        let error = await #expect(throws: RingbackError.self) {
            try await daemon.client.acknowledge(try link("3/../4"))
        }
        #expect(error?.kind == .policyDenied)
        #expect(daemon.requests.last?.hasPrefix("POST /v1/deep-links/3%2F..%2F4/ack ") == true)
        #expect(throws: RingbackError.self) { try DeepLink(reading: ["id": "1", "scheme": "coin"]) }
    }
}
