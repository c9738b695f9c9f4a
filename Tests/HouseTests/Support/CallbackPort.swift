import Cryptography
import RingbackBase
import Testing

/// A flow that waits, its genuine callback, and what must stay true until that one is delivered.
struct CallbackPort: Sendable {
    let stage: Stage
    let flow: Stage.PendingFlow
    let genuine: LocalURL

    init(_ stage: Stage, _ account: String = "work") async throws {
        self.stage = stage
        flow = try await stage.begin(account)
        genuine = try await Browser.signIn(at: flow.authorizationURL)
    }

    var number: Int { genuine.port }

    func send(_ text: String) async throws -> Answer { try await stage.tcp(number, text) }

    /// A request with the genuine target and Host, unless said otherwise.
    func request(
        _ method: String = "GET", _ target: String? = nil, host: String? = nil, fields: [(String, String)] = []
    ) -> String {
        var text = "\(method) \(target ?? genuine.target) HTTP/1.1\r\nHost: \(host ?? genuine.authority)\r\n"
        for (name, value) in fields { text += "\(name): \(value)\r\n" }
        return text + "\r\n"
    }

    /// What every answer of the listener must have, whatever it answers to: nothing in it is anybody's text, nothing
    /// may be kept, framed, loaded or told on.
    static func expectFields(
        of answer: Answer, to what: String, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let expected = [
            "cache-control": "no-store", "referrer-policy": "no-referrer", "x-content-type-options": "nosniff",
            "connection": "close",
        ]
        // One stylesheet is allowed, the page's own.
        let policy = (answer.fields["content-security-policy"] ?? "").split(separator: "; ").map(String.init)
        let source = policy.first { $0.hasPrefix("style-src ") } ?? ""
        let others = ["default-src 'none'", "frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'"]
        #expect(
            policy.filter { $0 != source } == others && source.hasPrefix("style-src 'sha256-"), "\(what): \(policy)",
            sourceLocation: sourceLocation)
        if let style = answer.style {
            #expect(
                source == "style-src 'sha256-\(Base64.encode(Digest.sha256(style)))'", "the style of \(what)",
                sourceLocation: sourceLocation)
        }
        for (name, value) in expected {
            #expect(answer.fields[name] == value, "\(name) of the answer to \(what)", sourceLocation: sourceLocation)
        }
        let forbidden = answer.fields.keys.filter { $0.hasPrefix("access-control-") || $0 == "set-cookie" }
        #expect(forbidden.isEmpty, "the answer to \(what)", sourceLocation: sourceLocation)
        #expect(!answer.text.lowercased().contains("<script"), "the answer to \(what)", sourceLocation: sourceLocation)
    }

    /// Nothing that came has counted: the flow waits, and no code was exchanged.
    func expectUntouched(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let flow = try await stage.api("GET", "/v1/flows/\(flow.id)")
        #expect(flow["status"]?.string == "pending", "\(flow)", sourceLocation: sourceLocation)
        #expect(try await stage.sandbox.counters().requests("token") == 0, sourceLocation: sourceLocation)
    }

    /// The genuine callback still counts, and the person reads that it did.
    func expectGenuineCompletes(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let (answer, page) = try await Browser.deliver(genuine)
        #expect(answer.status == 303 && answer.location == "/done", "\(answer)", sourceLocation: sourceLocation)
        #expect(page?.status == 200, sourceLocation: sourceLocation)
        CallbackPort.expectFields(of: answer, to: "the genuine callback", sourceLocation: sourceLocation)
        if let page { CallbackPort.expectFields(of: page, to: "/done", sourceLocation: sourceLocation) }
        let flow = try await stage.api("GET", "/v1/flows/\(flow.id)")
        #expect(flow["status"]?.string == "completed", "\(flow)", sourceLocation: sourceLocation)
    }

    /// Plays a stage with one such flow; in the end the genuine callback must still count.
    static func attack(_ body: (CallbackPort) async throws -> Void) async throws {
        try await Stage.play { stage in
            let port = try await CallbackPort(stage)
            try await body(port)
            try await port.expectUntouched()
            try await port.expectGenuineCompletes()
        }
    }
}
