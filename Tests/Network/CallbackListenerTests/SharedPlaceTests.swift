import CallbackListener
import Glibc
import LocalHTTP
import Testing

@Suite(.timeLimit(.minutes(5))) struct `A redirect URI of several flows` {
    /// The uid that every connection is said to have.
    private static let peer = getuid() + 1

    private func binding(of owner: String, acceptsPost: Bool = false, peerUIDs: Set<UInt32> = []) throws
        -> CallbackBinding
    {
        var binding = try CallbackBinding(path: "/callback", acceptsPost: acceptsPost, peerUIDs: peerUIDs)
        binding.owner = owner
        return binding
    }

    private func post(to port: Int) async -> Answer {
        await Visitor.send(
            """
            POST /callback HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r
            Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 14\r\n\r\ncode=c&state=s
            """, to: port)
    }

    @Test func `accepts a form as the later flow says, while the former one's pages are still served`() async throws {
        try await withListener { listener, deliveries in
            let former = try listener.open(binding(of: "work"))
            #expect(await post(to: portOf(former)).status == 405)
            listener.close(former, owner: "work")
            let later = try listener.open(binding(of: "work", acceptsPost: true))
            #expect(later == former)
            #expect(await post(to: portOf(later)).status == 303)
            // The first one was delivered too, with its obstacle.
            #expect(deliveries.forms == ["code=c&state=s", "code=c&state=s"])
            #expect(deliveries.owners == [["work"], ["work"]])
            listener.close(later, owner: "work")
            _ = try listener.open(binding(of: "work"))
            #expect(await post(to: portOf(later)).status == 405)
        }
    }

    @Test func `does not accept a user whom only the former flow accepted`() async throws {
        try await withListener(ownerOf: { _ in Self.peer }) { listener, deliveries in
            let former = try listener.open(binding(of: "work", peerUIDs: [Self.peer]))
            let port = portOf(former)
            listener.close(former, owner: "work")
            // The page after the callback.
            #expect(await Visitor.get("/done", at: port).status == 200)
            let later = try listener.open(binding(of: "work"))
            #expect(later == former)
            #expect(await Visitor.get("/callback?code=c&state=s", at: port).status == 404)
            #expect(await Visitor.get("/done", at: port).status == 404)
            #expect(deliveries.urls.isEmpty)
        }
    }

    @Test(arguments: [true, false])
    func `says whose flows a request may answer, if owners accept different users`(isFirstPending: Bool) async throws {
        try await withListener(ownerOf: { _ in Self.peer }) { listener, deliveries in
            let first = try listener.open(binding(of: "first", peerUIDs: [Self.peer]))
            let port = portOf(first)
            if !isFirstPending { listener.close(first, owner: "first") }
            #expect(try listener.open(binding(of: "second", acceptsPost: true)) == first)
            #expect(await Visitor.get("/callback?code=c&state=s", at: port).status == 303)
            #expect(deliveries.owners == [["first"]])
            // The one accepts this user, the other one forms: neither accepts this user's form.
            #expect(await post(to: port).status == 405)
        }
    }

    @Test func `stays open until the last owner's flow has ended`() async throws {
        try await withListener(linger: .milliseconds(20)) { listener, deliveries in
            let first = try listener.open(binding(of: "first"))
            let port = portOf(first)
            #expect(try listener.open(binding(of: "second")) == first)
            listener.close(first, owner: "first")
            listener.close(first, owner: "first")
            #expect(await Visitor.get("/callback?code=c&state=s", at: port).status == 303)
            #expect(deliveries.owners == [["first", "second"]])
            listener.close(first, owner: "second")
            #expect(await Visitor.sawClosed(port, of: listener))
        }
    }
}
