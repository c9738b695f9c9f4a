internal import BrokerCore
internal import LocalHTTP
internal import Records
internal import RingbackAPI
internal import RingbackBase

/// A request that has found its route. A name given twice, or a value of a wrong type, is the caller's mistake.
struct Call: Sendable {
    let request: ServerRequest
    let route: Route
    let parameters: [String: String]
    let language: Language
    let facts: ConnectionFacts
    private let query: [String: String]
    private let body: JSONObject
    static let longestWait: Duration = .seconds(600)

    init(
        _ request: ServerRequest, _ route: Route, _ parameters: [String: String], _ facts: ConnectionFacts
    ) throws(Problem) {
        self.request = request
        self.route = route
        self.parameters = parameters
        self.facts = facts
        language = Language(accepting: request.fields[all: "Accept-Language"])
        query = try Call.readQuery(request.query)
        body = try Call.readBody(request)
        try refuseUnknownMembers()
    }

    /// The pid of the process at the other end, from the kernel; nil if there is none.
    var process: Int32? { if case .local(_, let pid) = request.peer { pid } else { nil } }

    private static func readQuery(_ text: String?) throws(Problem) -> [String: String] {
        var query: [String: String] = [:]
        guard let pairs = try? FormEncoding.parse(text ?? "") else {
            throw Problem(.invalidRequest, "The query is not valid: check its percent escapes.")
        }
        for pair in pairs {
            guard query.updateValue(pair.value, forKey: pair.name) == nil else {
                throw Problem(.invalidRequest, "The query has “\(pair.name)” twice.")
            }
        }
        return query
    }

    private static func readBody(_ request: ServerRequest) throws(Problem) -> JSONObject {
        guard !request.body.isEmpty else { return JSONObject() }
        let type = request.fields["Content-Type"]?.prefix { $0 != ";" && $0 != " " } ?? ""
        guard HTTPFields.isSame(String(type), "application/json") else {
            throw Problem(.unsupportedMediaType, "Send the body with: Content-Type: application/json")
        }
        let value: JSON
        do throws(JSONError) { value = try JSON(parsing: request.body) } catch {
            throw Problem(.invalidRequest, "The body is not JSON: \(error).")
        }
        guard let object = value.object else { throw Problem(.invalidRequest, "The body is not a JSON object.") }
        return object
    }

    func account() throws(Problem) -> AccountName {
        guard let name = AccountName(self["account"]) else {
            throw Problem(.accountNotFound, "There is no account of this name.")
        }
        return name
    }

    subscript(parameter: String) -> String { parameters[parameter] ?? "" }
    func query(_ name: String) -> String? { query[name] }
    var queryNames: [String] { query.keys.sorted() }

    /// Rejects a parameter that the route does not read: with a misspelt `scope`, the token would have more scopes.
    func refuseUnknownQuery() throws(Problem) {
        guard !query.isEmpty else { return }
        let known = route.query.map(\.name).sorted()
        guard let stranger = queryNames.first(where: { !known.contains($0) }) else { return }
        let words = known.isEmpty ? "none" : known.joined(separator: ", ")
        throw Problem(.invalidRequest, "The query has “\(stranger)”, which is not a parameter here. Known: \(words).")
    }

    func query<Word: RawRepresentable<String> & CaseIterable>(
        _ name: String, as type: Word.Type
    ) throws(Problem) -> Word? {
        guard let value = query[name] else { return nil }
        guard let word = Word(rawValue: value) else {
            let words = type.allCases.map(\.rawValue).joined(separator: ", ")
            throw invalid(name, "must be one of: \(words)")
        }
        return word
    }

    /// A time in the query, in seconds, clamped to ``longestWait``.
    func duration(_ name: String) throws(Problem) -> Duration? {
        guard let text = query[name] else { return nil }
        guard Call.isNumber(text) else { throw invalid(name, "must be a whole number of seconds") }
        // A number that is too large for an `Int` is clamped too.
        return min(.seconds(Int(text) ?? Int.max), Call.longestWait)
    }

    /// An instant in the query: as Unix seconds, or as RFC 3339 writes it.
    func instant(_ name: String) throws(Problem) -> WallInstant? {
        guard let text = query[name] else { return nil }
        guard let seconds = Call.isNumber(text) ? Int(text) : Timestamp.seconds(of: text) else {
            throw invalid(name, "must be Unix seconds, or a time such as 2027-01-15T08:00:00Z")
        }
        return WallInstant(seconds: seconds)
    }

    func count(_ name: String, atMost bound: Int) throws(Problem) -> Int? {
        guard let text = query[name] else { return nil }
        guard Call.isNumber(text), text.utf8.contains(where: { $0 > 0x30 }) else {
            throw invalid(name, "must be a whole number, 1 or more")
        }
        return min(Int(text) ?? Int.max, bound)
    }

    private static func isNumber(_ text: String) -> Bool { !text.isEmpty && text.utf8.allSatisfy(\.isDigit) }
    func flag(_ name: String) throws(Problem) -> Bool { try query(name, as: Flag.self) == .true }

    private enum Flag: String, CaseIterable { case `true`, `false` }

    /// A member of the body; nil if it is absent or null.
    private func member(_ name: String) -> JSON? { body[name] == .null ? nil : body[name] }

    private func value<Value>(_ name: String, _ reason: String, _ read: (JSON) -> Value?) throws(Problem) -> Value? {
        guard let member = member(name) else { return nil }
        guard let value = read(member) else { throw invalid(name, reason) }
        return value
    }

    func has(_ name: String) -> Bool { member(name) != nil }
    func text(_ name: String) throws(Problem) -> String? { try value(name, "must be a string", \.string) }

    func required(_ name: String) throws(Problem) -> String {
        guard let text = try text(name) else { throw invalid(name, "it is required") }
        return text
    }

    /// A secret. Errors about it do not contain it.
    func secret(_ name: String) throws(Problem) -> Secret? {
        guard let text = try text(name) else { return nil }
        guard !text.isEmpty else { throw invalid(name, "must not be empty; leave it out if there is none") }
        return Secret(text)
    }

    func truth(_ name: String) throws(Problem) -> Bool { try value(name, "must be true or false", \.bool) ?? false }
    func object(_ name: String) throws(Problem) -> JSONObject? { try value(name, "must be an object", \.object) }
    var wholeBody: JSONObject { body }

    func number(_ name: String, in range: ClosedRange<Int>) throws(Problem) -> Int? {
        try value(name, "must be a whole number from \(range.lowerBound) to \(range.upperBound)") { value in
            value.integer.flatMap { range.contains($0) ? $0 : nil }
        }
    }

    func list<Element>(_ name: String, _ read: (JSON) -> Element?) throws(Problem) -> [Element] {
        guard let value = member(name) else { return [] }
        guard let array = value.array, array.count <= 256 else { throw invalid(name, "must be an array") }
        var elements: [Element] = []
        for entry in array {
            guard let element = read(entry) else { throw invalid(name, "one of its elements is not valid") }
            elements.append(element)
        }
        return elements
    }

    func texts(_ name: String) throws(Problem) -> [(String, String)] {
        guard let value = member(name) else { return [] }
        guard let object = value.object else { throw invalid(name, "must be an object of strings") }
        var pairs: [(String, String)] = []
        for entry in object.members {
            guard let text = entry.value.string else { throw invalid("\(name).\(entry.name)", "must be a string") }
            pairs.append((entry.name, text))
        }
        return pairs
    }

    func invalid(_ name: String, _ reason: String) -> Problem { Problem(invalid: name, "\(reason).") }

    func ask<Value>(_ body: (AccountName) async throws(BrokerError) -> Value) async throws(Problem) -> Value {
        let name = try account()
        return try await ask { () throws(BrokerError) in try await body(name) }
    }

    /// Runs a call of the broker for the account of the path. Returns the account as it is then.
    func account(_ body: (AccountName) async throws(BrokerError) -> AccountView) async throws(Problem) -> JSONObject {
        try await ask(body).json(in: language)
    }

    func flow(_ body: () async throws(BrokerError) -> FlowView) async throws(Problem) -> JSONObject {
        try await ask(body).json(in: language)
    }

    func ask<Value>(_ body: () async throws(BrokerError) -> Value) async throws(Problem) -> Value {
        do throws(BrokerError) { return try await body() } catch { throw Problem(error, language: language) }
    }
}
