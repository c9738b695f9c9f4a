import Cryptography
import LocalHTTP
import RingbackBase
import Synchronization
import Testing

@testable import Sandbox

let origin = "http://127.0.0.1:8080"
let callback = "http://127.0.0.1:5000/callback"
let verifier = String(repeating: "v", count: 43)
let challenge = Base64URL.encode(Digest.sha256(verifier))

final class SandboxClock: Sendable {
    private let seconds = Mutex(1_800_000_000)
    var now: Int { seconds.withLock { $0 } }
    func advance(by count: Int) { seconds.withLock { $0 += count } }
}

struct Answer {
    let status: Int
    let fields: HTTPFields
    let body: [UInt8]

    init(_ response: ServerResponse) {
        status = response.status
        fields = response.fields
        body = if case .bytes(let bytes) = response.body { bytes } else { [] }
    }

    var text: String { String(decoding: body, as: UTF8.self) }
    var json: JSON { (try? JSON(parsing: body)) ?? .null }
    var error: String? { json["error"]?.string }
    var location: String? { fields["Location"] }
    var callback: [FormEncoding.Pair] {
        let query = location?.split(separator: "?", maxSplits: 1).dropFirst().first ?? ""
        return (try? FormEncoding.parse(query)) ?? []
    }
    func parameter(_ name: String) -> String? { callback.first { $0.name == name }?.value }
    func hidden(_ name: String) -> String? {
        let parts = text.split(separator: "name=\"\(name)\" value=\"", maxSplits: 1)
        return parts.count == 2 ? parts[1].split(separator: "\"").first.map(String.init) : nil
    }
}

/// A browser, a client and a tester in one, who speaks to a site without a socket.
struct Visitor {
    let site: SandboxSite
    let clock = SandboxClock()
    var prefix = ""

    init(_ options: SandboxOptions = SandboxOptions()) {
        site = SandboxSite(options: options) { [clock] in clock.now }
        site.open(at: origin)
    }

    /// Signs in alice without a page, with the cheapest keys.
    static func quick(_ change: (inout SandboxSettings) -> Void = { _ in }) -> Visitor {
        var options = SandboxOptions()
        options.settings.algorithm = .es256
        options.settings.autoApprovedUser = "alice"
        change(&options.settings)
        return Visitor(options)
    }

    func send(
        _ method: String, _ target: String, fields: [(String, String)] = [], body: [UInt8] = []
    ) async -> Answer {
        let peer = Peer.network(client: [127, 0, 0, 1], clientPort: 1, server: [127, 0, 0, 1], serverPort: 8080)
        let fields = HTTPFields([("Host", "127.0.0.1:8080")] + fields)
        return Answer(
            await site.respond(
                to: ServerRequest(method: method, target: target, fields: fields, body: body, peer: peer)))
    }

    func get(_ path: String, _ query: [(String, String)] = [], fields: [(String, String)] = []) async -> Answer {
        await send("GET", prefix + path + (query.isEmpty ? "" : "?" + FormEncoding.encode(query)), fields: fields)
    }

    func post(_ path: String, _ form: [(String, String)], fields: [(String, String)] = []) async -> Answer {
        await send(
            "POST", prefix + path, fields: [("Content-Type", "application/x-www-form-urlencoded")] + fields,
            body: Array(FormEncoding.encode(form, spaceAsPlus: true).utf8))
    }

    @discardableResult
    func control(_ document: JSON) async -> Answer {
        await send("POST", prefix + "/sandbox/control", body: document.serialized())
    }

    func counter(_ name: String) async -> Int? { await get("/sandbox/counters").json[name]?.integer }

    /// An authorization request; nil removes a parameter.
    func authorize(_ changes: [String: String?] = [:]) async -> Answer {
        var parameters: [String: String] = [
            "response_type": "code", "client_id": "ringback-demo", "redirect_uri": callback,
            "scope": "openid email profile offline_access", "state": "the-state", "nonce": "the-nonce",
            "code_challenge": challenge, "code_challenge_method": "S256",
        ]
        for (name, value) in changes { parameters[name] = value }
        return await get("/authorize", parameters.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
    }

    func code(_ changes: [String: String?] = [:]) async throws -> String {
        try #require(await authorize(changes).parameter("code"))
    }

    func exchange(_ code: String, _ changes: [String: String?] = [:]) async -> Answer {
        var form: [String: String] = [
            "grant_type": "authorization_code", "code": code, "client_id": "ringback-demo", "redirect_uri": callback,
            "code_verifier": verifier,
        ]
        for (name, value) in changes { form[name] = value }
        return await post("/token", form.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
    }

    func refresh(_ token: String, _ extra: [(String, String)] = []) async -> Answer {
        await post(
            "/token",
            [("grant_type", "refresh_token"), ("client_id", "ringback-demo"), ("refresh_token", token)] + extra)
    }

    func signIn(_ changes: [String: String?] = [:]) async throws -> JSON {
        await exchange(try await code(changes)).json
    }

    func userinfo(_ accessToken: String) async -> Answer {
        await get("/userinfo", fields: [("Authorization", "Bearer \(accessToken)")])
    }
}

extension JSON {
    func text(_ name: String) throws -> String { try #require(self[name]?.string) }
}

/// An ID token taken apart.
struct TakenApart {
    let header: JSON
    let claims: JSON
    let input: [UInt8]
    let signature: [UInt8]

    init(_ token: String) throws {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        try #require(parts.count == 3)
        header = try JSON(parsing: #require(Base64URL.decode(parts[0])))
        claims = (try? JSON(parsing: #require(Base64URL.decode(parts[1])))) ?? .null
        input = Array("\(parts[0]).\(parts[1])".utf8)
        signature = try #require(Base64URL.decode(parts[2]))
    }

    /// Checks with the key that the header names, or any of the algorithm's type.
    func isSigned(with keySet: JSON) throws -> Bool {
        let algorithm = try #require(SignatureAlgorithm(rawValue: header.text("alg")))
        let keys = try #require(keySet["keys"]?.array)
        let kid = header["kid"]?.string
        return keys.contains { key in
            guard key["use"] == "sig", kid == nil || key["kid"]?.string == kid else { return false }
            let publicKey = SandboxClient.keys(in: ["keys": [key]])?.first
            return publicKey?.verify(signature: signature, message: input, algorithm: algorithm) ?? false
        }
    }
}
