import RingbackBase

final class SandboxServer: Sendable {
    let program: Program
    /// `http://127.0.0.1:PORT`: the issuer at the root; others are below, as `/tenant-a`.
    let origin: String

    init(_ arguments: [String], environment: [String: String]) async throws {
        program = try Program("ringback-sandbox", ["--port", "0"] + arguments, environment: environment)
        let line = try await program.line("“listening on …”")
        guard line.hasPrefix("listening on http://127.0.0.1:") else {
            throw Late(what: "“listening on http://127.0.0.1:PORT”, not “\(line)”")
        }
        origin = String(line.dropFirst("listening on ".count))
    }

    func stop() async -> Bool { await program.stop() }

    func request(
        _ method: String, _ path: String, _ body: JSON? = nil, fields: [(String, String)] = []
    ) async throws -> Answer {
        let url = try LocalURL(origin + path)
        let connection = try Connection(to: url.place)
        let content = body.map(\.text) ?? ""
        let more = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
        await connection.send(
            "\(method) \(url.target) HTTP/1.1\r\nHost: \(url.authority)\r\nContent-Type: application/json\r\n\(more)"
                + "Content-Length: \(content.utf8.count)\r\nConnection: close\r\n\r\n\(content)")
        return try await connection.answer(within: Bound.seconds(120))
    }

    /// Sets switches; see the sandbox's control endpoint. `issuer`: `/tenant-a` and so on.
    func control(_ switches: JSON, issuer: String = "") async throws {
        let answer = try await request("POST", "\(issuer)/sandbox/control", switches)
        guard answer.status == 200 else { throw Late(what: "switches, not \(answer)") }
    }

    func counters(issuer: String = "") async throws -> Counters {
        Counters(json: try await request("GET", "\(issuer)/sandbox/counters").json)
    }

    /// The requests so far, each with `endpoint`, `method`, `parameters`, `headers`, `status`.
    func log(issuer: String = "") async throws -> [JSON] {
        try await request("GET", "\(issuer)/sandbox/log").json["requests"]?.array ?? []
    }

    func logText(issuer: String = "") async throws -> String {
        try await request("GET", "\(issuer)/sandbox/log").text
    }

    /// Waits until so many requests are held by a gate or a hang (`waiting`), or have arrived so far (`seen`).
    func wait(_ endpoint: String, count: Int = 1, what: String = "waiting", issuer: String = "") async throws {
        let answer = try await request(
            "GET", "\(issuer)/sandbox/wait?endpoint=\(endpoint)&count=\(count)&what=\(what)&timeout=60")
        guard answer.status == 200 else { throw Late(what: "\(count) \(what) at \(endpoint), not \(answer)") }
    }

    struct Counters: Sendable, CustomStringConvertible {
        let json: JSON

        func requests(_ endpoint: String) -> Int { json["requests"]?[endpoint]?.integer ?? 0 }
        /// By grant type, refused ones included.
        func tokenRequests(_ grant: String) -> Int { json["token_requests"]?[grant]?.integer ?? 0 }
        subscript(name: String) -> Int { json[name]?.integer ?? 0 }
        var description: String { json.text }
    }
}
