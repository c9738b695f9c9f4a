import Cryptography
import Foundation
import RingbackBase
import Testing

@testable import Sandbox

/// A file of `Tests/Vectors/supabase`: requests in order, and what each must be answered (see the folder's page).
struct SupabaseVector: Sendable, CustomTestStringConvertible {
    let name: String
    let document: JSON

    var testDescription: String { name }

    static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
        .appending(path: "Vectors/supabase/observed")

    static let names: [String] = {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path())) ?? []
        return files.filter { $0.hasSuffix(".json") }.sorted()
    }()

    init(named name: String) throws {
        self.name = name
        document = try JSON(parsing: Array(Data(contentsOf: SupabaseVector.folder.appending(path: name))))
    }
}

struct SupabaseReplay {
    private static let known: Set = [
        "note", "request", "expect", "save", "mail", "message", "totp", "id_token", "advance", "control",
    ]
    let vector: SupabaseVector
    var visitor: Visitor
    var values = [
        "verifier": verifier, "challenge": challenge, "wrong_verifier": String(repeating: "w", count: 43),
        "project": origin + "/supabase", "key": "sb_publishable_sandbox",
    ]

    init(_ vector: SupabaseVector) {
        self.vector = vector
        visitor = Visitor.quick()
        visitor.prefix = "/supabase"
    }

    mutating func run() async throws {
        let configuration = vector.document["configuration"] ?? [:]
        #expect(await visitor.control(["supabase": configuration]).status == 200)
        for (number, step) in try #require(vector.document["steps"]?.array).enumerated() {
            try await play(step, "step \(number + 1)")
        }
    }

    private mutating func play(_ step: JSON, _ place: String) async throws {
        let names = try #require(step.object).names
        #expect(Set(names).isSubset(of: SupabaseReplay.known), "\(place)")
        if let seconds = step["advance"]?.integer { visitor.clock.advance(by: seconds) }
        if let control = step["control"] {
            #expect(await visitor.control(control).status == 200, "\(place)")
        }
        if let wish = step["mail"] { try await read("/sandbox/mailbox", wish, step, place) }
        if let wish = step["message"] { try await read("/sandbox/messages", wish, step, place) }
        if let wish = step["totp"] {
            let secret = try SupabaseTOTP.bytes(ofBase32: filled(wish.text("secret")))
            let counter = visitor.clock.now / 30 + (wish["steps"]?.integer ?? 0)
            values[try wish.text("as")] = SupabaseTOTP.code(secret, counter: counter)
        }
        if let wish = step["id_token"] {
            let nonce = wish["nonce"]?.string.map { Digest.hex(Digest.sha256($0)) }
            let tokens = try await visitor.signIn(["nonce": nonce])
            values[try wish.text("as")] = try tokens.text("id_token")
            if let name = wish["access_token_as"]?.string { values[name] = try tokens.text("access_token") }
        }
        guard let request = step["request"] else { return }
        let answer = try await send(request)
        try check(answer, step["expect"] ?? ["status": 200], place)
        try save(step, SupabaseReplay.shown(answer), place)
    }

    private mutating func read(_ path: String, _ wish: JSON, _ step: JSON, _ place: String) async throws {
        let query = try #require(wish.object).members.map { ($0.name, filled($0.value.string ?? "")) }
        let letters = await visitor.get(path, query).json["letters"]?.array ?? []
        if wish.object?.members.isEmpty == false, step["save"] == nil {
            #expect(letters.isEmpty, "\(place): nothing was sent")
            return
        }
        try save(step, try #require(letters.last, "\(place): nothing was sent"), place)
    }

    private mutating func save(_ step: JSON, _ shown: JSON, _ place: String) throws {
        for member in step["save"]?.object?.members ?? [] {
            var value = shown
            for part in try #require(member.value.string).split(separator: "/") {
                let next = Int(part).map { value.array?[$0] } ?? value[String(part)]
                value = try #require(next, "\(place): there is no \(member.value)")
            }
            values[member.name] = value.string ?? value.text
        }
    }

    private func send(_ request: JSON) async throws -> Answer {
        var fields: [(String, String)] = []
        let isBrowser = request["url"] != nil
        if !isBrowser, request["headers"]?["apikey"] == nil { fields.append(("apikey", "sb_publishable_sandbox")) }
        if let token = request["bearer"]?.string { fields.append(("Authorization", "Bearer " + filled(token))) }
        for member in request["headers"]?.object?.members ?? [] where member.value != .null {
            fields.append((member.name, filled(member.value.string ?? "")))
        }
        var body: [UInt8] = []
        if let json = request["json"] {
            body = filled(json).serialized()
            fields.append(("Content-Type", "application/json"))
        } else if let text = request["text"]?.string {
            body = Array(text.utf8)
        }
        let method = request["method"]?.string ?? (request["json"] == nil ? "GET" : "POST")
        if isBrowser {
            let url = filled(try request.text("url"))
            #expect(url.hasPrefix(origin), "a browser leaves the sandbox: \(url)")
            return await visitor.send(method, String(url.dropFirst(origin.count)), fields: fields, body: body)
        }
        let query = (request["query"]?.object?.members ?? []).map { ($0.name, filled($0.value.string ?? "")) }
        let target = visitor.prefix + filled(try request.text("path"))
        return await visitor.send(
            method, target + (query.isEmpty ? "" : "?" + FormEncoding.encode(query)), fields: fields, body: body)
    }

    /// Replaces `{name}` by what was saved under the name.
    private func filled(_ text: String) -> String {
        var output = ""
        var rest = text[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            let name = String(rest[rest.index(after: open)..<close])
            output += rest[..<open] + (values[name] ?? "{\(name)}")
            rest = rest[rest.index(after: close)...]
        }
        return output + rest
    }

    private func filled(_ value: JSON) -> JSON {
        switch value {
        case .string(let text): .string(filled(text))
        case .array(let elements): .array(elements.map(filled))
        case .object(let object): .object(JSONObject(object.members.map { .init($0.name, filled($0.value)) }))
        default: value
        }
    }

    /// An answer as patterns and saved paths see it.
    private static func shown(_ answer: Answer) -> JSON {
        var headers = JSONObject()
        for line in answer.fields.lines { headers[line.name.lowercased()] = .string(line.value) }
        var members: JSONObject = [
            "status": answer.status, "headers": headers, "body": answer.json, "text": answer.text,
        ]
        if let token = answer.json["access_token"]?.string, let parts = try? TakenApart(token) {
            members["claims"] = parts.claims
            members["header"] = parts.header
        }
        if let location = answer.location {
            let halves = location.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
            members["location"] = .string(location)
            members["base"] = .string(String(halves[0].prefix { $0 != "?" }))
            members["query"] = pairs(halves[0].drop { $0 != "?" }.dropFirst())
            members["fragment"] = pairs(halves.count == 2 ? halves[1] : "")
        }
        return .object(members)
    }

    private static func pairs(_ text: Substring) -> JSON {
        let pairs = (try? FormEncoding.parse(text)) ?? []
        return .object(JSONObject(pairs.map { .init($0.name, .string($0.value)) }))
    }

    private func check(_ answer: Answer, _ expected: JSON, _ place: String) throws {
        let shown = SupabaseReplay.shown(answer)
        for member in try #require(expected.object).members {
            let pattern = SupabasePattern(filled(member.value))
            let problem = pattern.mismatch(shown[member.name])
            #expect(problem == nil, "\(place), \(member.name)\(problem ?? "") in \(answer.text.prefix(600))")
        }
    }
}

extension SupabaseTOTP {
    static func bytes(ofBase32 text: String) throws -> [UInt8] {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
        var (bytes, buffer, bits) = ([UInt8](), 0, 0)
        for letter in text {
            buffer = (buffer << 5 | (try #require(letters.firstIndex(of: letter)))) & 0xFFFF
            bits += 5
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(buffer >> bits & 0xFF))
            }
        }
        return bytes
    }
}

/// What a value must be like: objects must have at least the members named, strings in angle brackets are rules.
struct SupabasePattern {
    let expected: JSON

    init(_ expected: JSON) {
        self.expected = expected
    }

    /// Where and how the value differs; nil if it fits.
    func mismatch(_ value: JSON?) -> String? {
        switch expected {
        case .string(let rule) where rule.hasPrefix("<"):
            return rule.fits(value) ? nil : ": not \(rule): \(describe(value))"
        case .object(let members):
            guard let object = value?.object else { return ": no object: \(describe(value))" }
            if members.members.isEmpty, !object.members.isEmpty { return ": not empty" }
            for member in members.members {
                if let problem = SupabasePattern(member.value).mismatch(object[member.name]) {
                    return ".\(member.name)\(problem)"
                }
            }
            return nil
        case .array(let patterns):
            guard let array = value?.array, array.count == patterns.count else { return ": \(describe(value))" }
            for (index, pattern) in patterns.enumerated() {
                if let problem = SupabasePattern(pattern).mismatch(array[index]) { return "[\(index)]\(problem)" }
            }
            return nil
        default: return value == expected ? nil : ": expected \(expected.text), not \(describe(value))"
        }
    }

    private func describe(_ value: JSON?) -> String { String((value?.text ?? "nothing").prefix(200)) }
}

extension String {
    /// `<absent>`, `<any>`, `<string>`, `<integer>`, `<uuid>`, `<instant>`, `<not TEXT>`, `<contains TEXT>`,
    /// `<starts TEXT>`, `<longer N>`.
    fileprivate func fits(_ value: JSON?) -> Bool {
        let words = dropFirst().dropLast().split(separator: " ", maxSplits: 1)
        let operand = words.count == 2 ? String(words[1]) : ""
        let text = value?.string
        switch words.first {
        case "absent": return value == nil
        case "any": return value != nil
        case "string": return text?.isEmpty == false
        case "integer": return value?.integer != nil
        case "uuid":
            return text?.wholeMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/) != nil
        case "instant": return text?.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,8}[1-9])?Z/) != nil
        case "not": return value != nil && text != operand
        case "contains": return text?.contains(operand) == true
        case "starts": return text?.hasPrefix(operand) == true
        case "longer": return (text?.utf8.count ?? 0) > (Int(operand) ?? .max)
        default: return false
        }
    }
}
