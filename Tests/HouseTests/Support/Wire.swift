import RingbackBase
import Testing

/// A request as a project got it, in the form of a line of a test, whatever made the request.
struct Wire: Equatable, CustomStringConvertible {
    let method: String
    /// Below the project's URL.
    let path: String
    let query: JSON
    /// Null for none.
    let body: JSON
    /// With the access token of a session.
    let isSignedIn: Bool

    /// A request to the project's Auth: `POST signup`. With `link`, a browser is to come back, and with a code.
    init(
        _ line: String, query: JSON = [:], body: JSON? = nil, link: Bool = false, signedIn: Bool = false
    ) {
        method = String(line.prefix { $0 != " " })
        path = "/auth/v1/" + line.drop { $0 != " " }.dropFirst()
        let challenge: JSON = ["code_challenge": "<challenge>", "code_challenge_method": "s256"]
        self.query = Wire.joined(query, link ? ["redirect_to": "<callback>"] : [:])
        self.body = body.map { Wire.joined($0, link ? challenge : [:]) } ?? .null
        isSignedIn = signedIn
    }

    /// An entry of the sandbox's log. What is new each time is named in angle brackets, if it has the right form.
    init(_ entry: JSON) {
        method = entry["method"]?.string ?? ""
        path = (entry["path"]?.string ?? "").split(separator: "/", omittingEmptySubsequences: false)
            .map { Wire.isUUID($0) ? "<uuid>" : String($0) }.joined(separator: "/")
        query = Wire.named("", entry["parameters"] ?? [:])
        body = Wire.named("", entry["document"] ?? .null)
        isSignedIn = entry["headers"]?["authorization"] != nil
    }

    var description: String { "\(method) \(path) \(query.text) \(body.text)\(isSignedIn ? " signed in" : "")" }

    /// The header fields that every request has, and no other.
    static func expectFields(_ entry: JSON) {
        let fields = entry["headers"]?.object ?? JSONObject()
        let (method, hasBody) = (entry["method"]?.string ?? "", entry["document"] != .null)
        var names: Set = ["host", "user-agent", "accept", "apikey", "x-supabase-api-version"]
        if hasBody { names.insert("content-type") }
        if hasBody || method != "GET" { names.insert("content-length") }
        if let bearer = fields["authorization"]?.string {
            names.insert("authorization")
            // A token, and no key of either form.
            #expect(bearer.hasPrefix("Bearer ey") && bearer.split(separator: ".").count == 3)
        }
        #expect(Set(fields.names) == names, "\(method) \(entry["path"]?.string ?? "")")
        #expect(fields["accept"] == "application/json")
        #expect(fields["apikey"] == "sb_publishable_sandbox")
        #expect(fields["x-supabase-api-version"] == "2024-01-01")
        if hasBody { #expect(fields["content-type"] == "application/json") }
    }

    private static func joined(_ one: JSON, _ other: JSON) -> JSON {
        named("", .object(JSONObject((one.object?.members ?? []) + (other.object?.members ?? []))))
    }

    private static func named(_ name: String, _ value: JSON) -> JSON {
        switch value {
        case .object(let object):
            let members = object.members.map { JSONObject.Member($0.name, named($0.name, $0.value)) }
            return .object(JSONObject(members.sorted { $0.name < $1.name }))
        case .string(let text): return .string(named(name, text))
        default: return value
        }
    }

    private static func named(_ name: String, _ text: String) -> String {
        switch name {
        case "redirect_to": isCallback(text) ? "<callback>" : text
        case "code_challenge": text.utf8.count == 43 && isBase64URL(text) ? "<challenge>" : text
        case "code_verifier": (43...128).contains(text.utf8.count) && isBase64URL(text) ? "<verifier>" : text
        case "auth_code", "challenge_id": isUUID(text[...]) ? "<uuid>" : text
        case "refresh_token": text.utf8.count >= 12 && isBase64URL(text) ? "<token>" : text
        default: text
        }
    }

    /// On loopback, with the flow's key of 128 bits as the last segment.
    private static func isCallback(_ text: String) -> Bool {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 6, parts[0] == "http:", parts[2].hasPrefix("127.0.0.1:") else { return false }
        return parts[3] == "callback" && parts[5].utf8.count == 22 && isBase64URL(parts[5])
    }

    private static func isBase64URL(_ text: some StringProtocol) -> Bool {
        text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): true
            default: false
            }
        }
    }

    private static func isUUID(_ text: Substring) -> Bool {
        text.utf8.count == 36 && text.split(separator: "-").map(\.utf8.count) == [8, 4, 4, 4, 12]
    }
}

extension Stage {
    /// Does something, and holds what the project is asked meanwhile to rows of the table: these, in this order, and
    /// nothing else. What is refused was not asked rightly.
    func expect(
        _ rows: [Wire], of deed: String, sourceLocation: SourceLocation = #_sourceLocation,
        by act: () async throws -> Void
    ) async throws {
        let last = try await requests().last?["number"]?.integer ?? 0
        try await act()
        // What a sign-out brings about may come after its answer.
        try await eventually(deed) { try await requests(after: last).count >= rows.count }
        let entries = try await requests(after: last)
        #expect(entries.map(Wire.init) == rows, "\(deed)", sourceLocation: sourceLocation)
        for entry in entries {
            Wire.expectFields(entry)
            #expect((200..<400).contains(entry["status"]?.integer ?? 0), "\(deed)", sourceLocation: sourceLocation)
        }
    }

    func expectSignOut(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let told = Wire("POST logout", query: ["scope": "local"], signedIn: true)
        try await expect([told], of: "signOut", sourceLocation: sourceLocation) {
            let output = try await ringback("logout", "app")
            #expect(output.status == 0, "\(output)", sourceLocation: sourceLocation)
        }
    }

    /// The daemon's requests to the project; a browser's are none.
    private func requests(after number: Int = 0) async throws -> [JSON] {
        try await sandbox.log(issuer: "/supabase").filter { entry in
            entry["headers"]?["user-agent"]?.string?.hasPrefix("ringback/") == true
                && (entry["number"]?.integer ?? 0) > number && entry["status"]?.integer != nil
        }
    }
}
