import Glibc
import LocalHTTP
import SignInPage
import Synchronization
import Testing

@testable import CallbackListener

extension `The loopback listener` {
    @Test func `NAT-07, NAT-08: flows share a free port, which is closed with the last of them`() async throws {
        try await withListener(linger: .milliseconds(20)) { listener, _ in
            #expect(listener.listeners.isEmpty)
            let first = try listener.open(CallbackBinding(path: "/callback/a"))
            let second = try listener.open(CallbackBinding(path: "/callback/b"))
            let again = try listener.open(CallbackBinding(path: "/callback/b"))
            let port = portOf(first)
            #expect(second == "http://127.0.0.1:\(port)/callback/b" && again == second)
            #expect(listener.listeners == ["127.0.0.1:\(port)"])
            listener.close(first)
            listener.close(second)
            #expect(await Visitor.get("/callback/b", at: port).status == 303)
            listener.close(again)
            listener.close(again)
            #expect(await Visitor.sawClosed(port, of: listener))
            #expect(listener.listeners.isEmpty)
        }
    }

    @Test func `the last page stands for a while after the last flow`() async throws {
        try await withListener { listener, _ in
            let redirectURI = try listener.open(CallbackBinding(path: "/callback/a"))
            let port = portOf(redirectURI)
            listener.close(redirectURI)
            #expect(await Visitor.get("/done", at: port).status == 200)
            // A repeated callback is still handed over: who knows the flows knows the first one's answer.
            #expect(await Visitor.get("/callback/a?state=s", at: port).status == 303)
            // A flow that starts now finds the port as it stands.
            #expect(try listener.openPort("/callback/b") == port)
            #expect(await Visitor.get("/callback/b?state=s", at: port).status == 303)
        }
    }

    @Test func `a flow that starts while a port waits to close keeps it open`() async throws {
        try await withListener(linger: .milliseconds(20)) { listener, _ in
            for round in 0..<20 {
                let redirectURI = try listener.open(CallbackBinding(path: "/callback/\(round)"))
                #expect(await Visitor.get("/callback/\(round)", at: portOf(redirectURI)).status == 303)
                listener.close(redirectURI)
            }
        }
    }

    @Test func `LB-06: a port that is taken fails at once and names the holder`() async throws {
        let taken = try #require(Visitor.occupy())
        defer { close(taken.descriptor) }
        try await withListener { listener, _ in
            let binding = try CallbackBinding(parsing: "http://127.0.0.1:\(taken.port)/cb")
            #expect(throws: CallbackListenerError.portInUse(host: "127.0.0.1", port: taken.port, holder: getuid())) {
                try listener.open(binding)
            }
            #expect(listener.listeners.isEmpty)
        }
    }

    @Test func `LB-07: localhost is both families or nothing`() async throws {
        try await withListener { listener, _ in
            let redirectURI = try listener.open(CallbackBinding(parsing: "http://localhost:{port}"))
            let port = portOf(redirectURI)
            #expect(redirectURI == "http://localhost:\(port)")
            #expect(listener.listeners == ["127.0.0.1:\(port)", "[::1]:\(port)"])
            let request = "GET /?code=c HTTP/1.1\r\nHost: localhost:\(port)\r\n\r\n"
            #expect(await Visitor.send(request, to: port).status == 303)
            #expect(await Visitor.send(request, to: port, overIPv6: true).status == 303)
            #expect(await Visitor.get("/?code=c", at: port).status == 421)

            let taken = try #require(Visitor.occupy(overIPv6: true))
            defer { close(taken.descriptor) }
            let binding = try CallbackBinding(parsing: "http://localhost:\(taken.port)/cb")
            #expect(throws: CallbackListenerError.portInUse(host: "::1", port: taken.port, holder: getuid())) {
                try listener.open(binding)
            }
            #expect(await Visitor.sawClosed(taken.port, of: listener))
        }
    }

    @Test func `the IPv6 literal has its own socket and name`() async throws {
        try await withListener { listener, deliveries in
            let redirectURI = try listener.open(CallbackBinding(parsing: "http://[::1]:{port}/cb"))
            let port = portOf(redirectURI)
            let request = "GET /cb?code=c HTTP/1.1\r\nHost: [::1]:\(port)\r\n\r\n"
            #expect(await Visitor.send(request, to: port, overIPv6: true).status == 303)
            #expect(deliveries.urls == ["http://[::1]:\(port)/cb?code=c"])
            #expect(listener.listeners == ["[::1]:\(port)"])
        }
    }

    @Test func `NAT-07: a fixed port can be opened again after it was closed`() async throws {
        let free = try #require(Visitor.occupy())
        close(free.descriptor)
        try await withListener(linger: .zero) { listener, _ in
            for _ in 0..<3 {
                let redirectURI = try listener.open(CallbackBinding(parsing: "http://127.0.0.1:\(free.port)/cb"))
                #expect(await Visitor.get("/cb?code=c", at: free.port).status == 303)
                listener.close(redirectURI)
                #expect(await Visitor.sawClosed(free.port, of: listener))
            }
        }
    }

    @Test func `the end of the service closes everything`() async throws {
        let listener = LoopbackListener { _ in CallbackOutcome(nil) }
        let port = try listener.openPort()
        let running = Task { try await listener.run() }
        #expect(await Visitor.get("/callback/work", at: port).status == 303)
        running.cancel()
        try await running.value
        #expect(await Visitor.sawClosed(port, of: listener))
        #expect(listener.listeners.isEmpty)
        #expect(throws: CallbackListenerError.shuttingDown) { try listener.openPort() }
    }
}
