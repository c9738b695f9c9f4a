import Glibc
import LocalHTTP
import RingbackBase
import Testing

@testable import CallbackListener

private let us: UInt32 = 1_000
private let them: UInt32 = 1_001
private let host = ("Host", "127.0.0.1:5000")

@Suite struct `The callback gate` {
    private func gate(acceptsPost: Bool = false, peerUIDs: Set<UInt32> = []) -> CallbackGate {
        var port = CallbackPort(number: 5_000, isFree: true, families: [.ipv4])
        port.authorities["127.0.0.1:5000"] = [.ipv4]
        port.waiting[CallbackPort.Place(authority: "127.0.0.1:5000", path: "/cb")] = CallbackPort.Waiting(
            base: "http://127.0.0.1:5000/cb",
            rules: ["": CallbackPort.Rule(count: 1, acceptsPost: acceptsPost, peerUIDs: peerUIDs)])
        port.waiting[CallbackPort.Place(authority: "127.0.0.1:5000", path: "/start/K")] = CallbackPort.Waiting(
            base: "http://127.0.0.1:5000/start/K",
            rules: ["": CallbackPort.Rule(count: 1, acceptsPost: false, peerUIDs: peerUIDs)], entranceKey: "K")
        return CallbackGate(port: port, user: us)
    }

    private func request(
        _ target: String = "/cb?state=s", method: String = "GET", _ fields: [(String, String)] = [host],
        body: String = "", server: [UInt8] = [127, 0, 0, 1]
    ) -> ServerRequest {
        ServerRequest(
            method: method, target: target, fields: HTTPFields(fields), body: Array(body.utf8),
            peer: .network(client: server, clientPort: 40_000, server: server, serverPort: 5_000))
    }

    private func verdict(_ gate: CallbackGate, _ request: ServerRequest, owner: UInt32? = us) -> String {
        switch gate.judge(request, owner: owner) {
        case .refused(let status): "\(status)"
        case .page(let content): "page \(content.page.status)"
        case .entrance(.opened(let key)): "opened \(key)"
        case .entrance(.foreign(let key, let uid)): "foreign \(key) \(uid.map(String.init) ?? "nobody")"
        case .site: "site"
        case .unmatched: "unmatched"
        case .stray(_, let status): status.map(String.init) ?? "unmatched"
        case .callback(let arrival):
            arrival.url + (arrival.form.map { " " + String(decoding: $0, as: UTF8.self) } ?? "")
        }
    }

    @Test func `lets a genuine callback through`() {
        #expect(verdict(gate(), request()) == "http://127.0.0.1:5000/cb?state=s")
        #expect(verdict(gate(), request("/cb")) == "http://127.0.0.1:5000/cb")
        let fields = [
            host, ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document"), ("Sec-Fetch-Site", "cross-site"),
        ]
        #expect(verdict(gate(), request(fields)) == "http://127.0.0.1:5000/cb?state=s")
    }

    private func request(_ fields: [(String, String)]) -> ServerRequest { request("/cb?state=s", fields) }

    @Test(arguments: [them, 0, nil] as [UInt32?])
    func `LB-10: another user gets the neutral answer, whatever they send`(owner: UInt32?) {
        #expect(verdict(gate(), request(), owner: owner) == "404")
        #expect(verdict(gate(), request([("Host", "evil")]), owner: owner) == "404")
        #expect(verdict(gate(), request("/done"), owner: owner) == "404")
        #expect(verdict(gate(), request(method: "PUT"), owner: owner) == "404")
    }

    @Test func `a configured peer may bring a callback, see the page that follows, and nothing else`() {
        let gate = gate(peerUIDs: [them])
        #expect(verdict(gate, request(), owner: them) == "http://127.0.0.1:5000/cb?state=s")
        #expect(verdict(gate, request("/done"), owner: them) == "page 200")
        #expect(verdict(gate, request("/done"), owner: 1_002) == "404")
        #expect(verdict(gate, request("/other"), owner: them) == "404")
        #expect(verdict(gate, request(), owner: 1_002) == "404")
    }

    @Test(arguments: [
        [("Host", "evil.example:5000")], [("Host", "localhost:5000")], [("Host", "127.0.0.1")],
        [("Host", "127.1:5000")], [("Host", "127.0.0.1:5000.")], [("Host", "127.0.0.1.:5000")],
        [("Host", "x@127.0.0.1:5000")], [("Host", "127.0.0.1:5000/")], [("Host", "127.0.0.1:5000, evil.example")],
        [("Host", "2130706433:5000")], [("Host", "0x7f.0.0.1:5000")],
        [("Host", "evil.example"), ("X-Forwarded-Host", "127.0.0.1:5000")],
        [("Host", "0.0.0.0:5000")], [("Host", "127.0.0.1.evil:5000")], [("Host", "127.0.0.1:5001")],
        [("Host", "127.0.0.1:05000")], [("Host", "[::1]:5000")], [host, host], [host, ("Host", "evil")], [],
        [("Host", "")],
    ])
    func `LB-01, ADV-01, ADV-02, ADV-05, ADV-07: a name that was not in the redirect URI is misdirected`(
        fields: [(String, String)]
    ) {
        #expect(verdict(gate(), request(fields)) == "421")
    }

    @Test func `a name belongs to its own socket`() {
        let address = Array(repeating: 0, count: 15) + [1] as [UInt8]
        #expect(verdict(gate(), request(server: address)) == "421")
    }

    @Test(arguments: ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get"])
    func `LB-28: other methods are refused`(method: String) {
        #expect(verdict(gate(), request(method: method)) == "405")
        #expect(verdict(gate(), request("/other", method: method)) == "405")
    }

    @Test(arguments: ["//cb", "/cb/", "/./cb", "/%63b", "/cb;x", "/CB", "/", "/favicon.ico", "/done/", "/cb%20", "/c"])
    func `LB-22: the path is compared byte for byte`(path: String) {
        #expect(verdict(gate(), request(path)) == "404")
        #expect(verdict(gate(), request(path + "?state=s")) == "unmatched")
    }

    @Test func `an address that a program opens is spent by a person's navigation alone`() {
        let fields = [host, ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")]
        #expect(verdict(gate(), request("/start/K", fields)) == "opened K")
        #expect(verdict(gate(), request("/start/K")) == "opened K")
        #expect(verdict(gate(), request("/start/K", method: "HEAD")) == "405")
        #expect(verdict(gate(acceptsPost: true), request("/start/K", method: "POST")) == "405")
        for field in [("Sec-Purpose", "prefetch"), ("Sec-Fetch-Dest", "image"), ("Sec-Fetch-Mode", "no-cors")] {
            #expect(verdict(gate(), request("/start/K", [host, field])) == "404")
        }
        #expect(verdict(gate(), request("/start/K", [("Host", "evil.example:5000")])) == "421")
        #expect(verdict(gate(), request("/start/k")) == "404")
    }

    @Test func `another user who asks for such an address is told of, and gets the neutral answer`() {
        #expect(verdict(gate(), request("/start/K"), owner: them) == "foreign K \(them)")
        #expect(verdict(gate(), request("/start/K"), owner: nil) == "foreign K nobody")
        #expect(verdict(gate(), request("/start/K", method: "HEAD"), owner: them) == "404")
        #expect(verdict(gate(peerUIDs: [them]), request("/start/K"), owner: them) == "opened K")
    }

    @Test(arguments: [
        ("Sec-Fetch-Mode", "cors"), ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Mode", "websocket"),
        ("Sec-Fetch-Dest", "image"), ("Sec-Fetch-Dest", "iframe"), ("Sec-Fetch-Dest", "empty"),
        ("Sec-Fetch-Dest", "script"), ("Sec-Fetch-Dest", "style"), ("Sec-Fetch-Dest", "frame"),
        ("Sec-Fetch-Dest", "object"), ("Sec-Fetch-Dest", "embed"), ("Sec-Fetch-Dest", "worker"),
        ("Sec-Fetch-Mode", "same-origin"), ("Sec-Fetch-Mode", ""), ("Sec-Purpose", "prefetch"),
        ("Sec-Purpose", "prefetch;prerender"),
        ("Purpose", "prefetch"), ("X-Moz", "prefetch"), ("X-Purpose", "preview"), ("Service-Worker", "script"),
    ])
    func `LB-02, LB-26, LB-29, NAT-56: what is no visit of a person changes nothing`(name: String, value: String) {
        #expect(verdict(gate(), request([host, (name, value)])) == "404")
        #expect(verdict(gate(), request("/done", [host, (name, value)])) == "404")
    }

    @Test(arguments: [
        ("/other?state=s", "GET", [host], CallbackArrival.Obstacle.otherPath),
        ("/cb?state=s", "GET", [host, ("Sec-Fetch-Dest", "iframe")], .notNavigated),
        ("/cb", "POST", [host, ("Content-Type", "application/x-www-form-urlencoded")], .posted),
    ])
    func `a request that may be a sign-in's response at the wrong place is delivered with its obstacle`(
        target: String, method: String, fields: [(String, String)], obstacle: CallbackArrival.Obstacle
    ) throws {
        let verdict = gate().judge(request(target, method: method, fields, body: "state=s"), owner: us)
        guard case .stray(let arrival, _) = verdict else {
            Issue.record("\(verdict)")
            return
        }
        #expect(arrival.obstacle == obstacle && arrival.owners == [""])
        #expect(arrival.url == "http://127.0.0.1:5000" + target)
        #expect(arrival.form == (method == "POST" ? Array("state=s".utf8) : nil))
    }

    @Test func `a form is taken where one is expected`() {
        let gate = gate(acceptsPost: true)
        let form = ("Content-Type", "application/x-www-form-urlencoded")
        let url = "http://127.0.0.1:5000/cb"
        #expect(verdict(gate, request("/cb", method: "POST", [host, form], body: "state=s")) == "\(url) state=s")
        let charset = ("content-type", "Application/X-WWW-Form-URLEncoded; charset=UTF-8")
        #expect(verdict(gate, request("/cb", method: "POST", [host, charset], body: "a=1")) == "\(url) a=1")
        for type in ["text/plain", "multipart/form-data", "application/json", ""] {
            #expect(verdict(gate, request("/cb", method: "POST", [host, ("Content-Type", type)])) == "415")
        }
        #expect(verdict(gate, request("/cb", method: "POST", [host])) == "415")
        #expect(verdict(gate, request("/cb", method: "POST", [host, form, form])) == "415")
        #expect(verdict(gate, request("/other", method: "POST", [host, form])) == "405")
        #expect(verdict(gate, request("/done", method: "POST", [host, form])) == "405")
    }

    @Test func `the last pages are served beside the callbacks`() {
        #expect(verdict(gate(), request("/done")) == "page 200")
        #expect(verdict(gate(), request("/failed?x=1")) == "page 200")
        #expect(verdict(gate(), request("/noted")) == "page 200")
    }

    @Test func `an arrival prints as nothing`() {
        let arrival = CallbackArrival(
            url: "http://127.0.0.1:1/cb?code=secret", form: Array("code=secret".utf8), owners: [])
        #expect("\(arrival)" == "<callback>")
        #expect(String(reflecting: arrival) == "<callback>")
        #expect(Mirror(reflecting: arrival).children.isEmpty)
    }
}
