internal import StrictJSON

/// Reads members of a control document with a type. An error names the member and what was expected.
extension JSONObject.Member {
    typealias Mistake = ControlDocument.Mistake

    func mistake(_ expectation: String) -> Mistake { Mistake(text: "\(name): expected \(expectation)") }

    var isNull: Bool { value == .null }

    func bool() throws(Mistake) -> Bool {
        guard let bool = value.bool else { throw mistake("true or false") }
        return bool
    }

    /// Not negative, and small enough to be added to a time.
    func integer() throws(Mistake) -> Int {
        guard let integer = value.integer, (0...1 << 40).contains(integer) else { throw mistake("a number from 0 up") }
        return integer
    }

    func string() throws(Mistake) -> String {
        guard let string = value.string else { throw mistake("a string") }
        return string
    }

    func object() throws(Mistake) -> JSONObject {
        guard let object = value.object else { throw mistake("an object") }
        return object
    }

    /// The elements of an array, read one by one.
    func each<Value>(_ read: (JSONObject.Member) throws(Mistake) -> Value) throws(Mistake) -> [Value] {
        guard let array = value.array else { throw mistake("an array") }
        var values: [Value] = []
        for (index, element) in array.enumerated() { values.append(try read(.init("\(name)[\(index)]", element))) }
        return values
    }

    func required(_ key: String) throws(Mistake) -> JSONObject.Member {
        guard let member = try optional(key) else { throw mistake("a member \(key)") }
        return member
    }

    func optional(_ key: String) throws(Mistake) -> JSONObject.Member? {
        try object()[key].map { .init("\(name).\(key)", $0) }
    }

    func allow(_ keys: Set<String>) throws(Mistake) {
        if let unknown = try object().names.first(where: { !keys.contains($0) }) {
            throw mistake("only \(keys.sorted().joined(separator: ", ")), not \(unknown)")
        }
    }

    func oneOf<Choice: RawRepresentable & CaseIterable>(
        _ type: Choice.Type
    ) throws(Mistake) -> Choice where Choice.RawValue == String {
        guard let choice = Choice(rawValue: try string()) else {
            throw mistake(Choice.allCases.map(\.rawValue).joined(separator: ", "))
        }
        return choice
    }

    func endpoint(_ name: String) throws(Mistake) -> Endpoint {
        guard let endpoint = Endpoint(rawValue: name) else { throw mistake(Endpoint.names) }
        return endpoint
    }

    func userName(_ users: [SandboxUser]) throws(Mistake) -> String {
        let name = try string()
        guard users.contains(where: { $0.name == name }) else {
            throw mistake("true, false or one of " + users.map(\.name).joined(separator: ", "))
        }
        return name
    }
}
