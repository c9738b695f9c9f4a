internal import RingbackBase

/// A value of a setting: read from a control document, and shown in the response.
protocol SettingValue {
    init(reading member: JSONObject.Member) throws
    var shown: JSON { get }
}

extension SettingValue where Self: JSONConvertible {
    var shown: JSON { jsonValue }
}

extension SettingValue where Self: RawRepresentable, Self: CaseIterable, RawValue == String {
    init(reading member: JSONObject.Member) throws {
        guard let choice = Self(rawValue: try member.string()) else {
            throw member.mistake(Self.allCases.map(\.rawValue).joined(separator: ", "))
        }
        self = choice
    }

    var shown: JSON { .string(rawValue) }
}

extension String: SettingValue {
    init(reading member: JSONObject.Member) throws { self = try member.string() }
}

extension Int: SettingValue {
    init(reading member: JSONObject.Member) throws { self = try member.integer() }
}

extension Bool: SettingValue {
    init(reading member: JSONObject.Member) throws { self = try member.bool() }
}

extension JSONObject: SettingValue {
    init(reading member: JSONObject.Member) throws { self = try member.object() }

    init(sorted values: [String: some JSONConvertible]) {
        self.init(values.sorted { $0.key < $1.key }.map { .init($0.key, $0.value.jsonValue) })
    }
}

extension Array: SettingValue where Element: SettingValue {
    init(reading member: JSONObject.Member) throws { self = try member.each(Element.init(reading:)) }
    var shown: JSON { .array(map(\.shown)) }
}

extension Optional: SettingValue where Wrapped: SettingValue {
    init(reading member: JSONObject.Member) throws { self = try member.isNull ? nil : Wrapped(reading: member) }
    var shown: JSON { self?.shown ?? .null }
}

extension Dictionary: SettingValue where Key == String, Value: SettingValue {
    init(reading member: JSONObject.Member) throws { self = try member.table(Value.init(reading:)) }
    var shown: JSON { .object(JSONObject(sorted: mapValues(\.shown))) }
}

struct Setting<Settings> {
    let name: String
    private(set) var set: (inout Settings, JSONObject.Member) throws -> Void
    let shown: (Settings) -> JSON

    init<Value: SettingValue>(
        _ name: String, _ path: WritableKeyPath<Settings, Value>,
        _ read: @escaping (JSONObject.Member) throws -> Value = { try Value(reading: $0) }
    ) {
        self.name = name
        set = { $0[keyPath: path] = try read($1) }
        shown = { $0[keyPath: path].shown }
    }

    /// A table, of which a control document replaces the entries that it names.
    static func merged<Value: SettingValue>(
        _ name: String, _ path: WritableKeyPath<Settings, [String: Value]>,
        _ read: @escaping (JSONObject.Member) throws -> [String: Value]
    ) -> Setting {
        var setting = Setting(name, path, read)
        setting.set = { $0[keyPath: path].merge(try read($1)) { $1 } }
        return setting
    }
}

protocol NamedSettings { static var all: [Setting<Self>] { get } }

extension NamedSettings {
    mutating func set(_ name: String, to member: JSONObject.Member) throws -> Bool {
        guard let setting = Self.all.first(where: { $0.name == name }) else { return false }
        try setting.set(&self, member)
        return true
    }

    var shown: JSONObject { JSONObject(Self.all.map { .init($0.name, $0.shown(self)) }) }
}

/// Reads members of a control document with a type. An error names the member and what was expected.
extension JSONObject.Member {
    func mistake(_ expectation: String) -> OAuthError {
        OAuthError("invalid_request", "\(name): expected \(expectation)")
    }

    var isUnknown: OAuthError { OAuthError("invalid_request", "\(name) is not a key of this document") }
    var isNull: Bool { value == .null }

    func bool() throws -> Bool {
        guard let bool = value.bool else { throw mistake("true or false") }
        return bool
    }

    /// Not negative, and small enough to be added to a time.
    func integer() throws -> Int {
        guard let integer = value.integer, (0...1 << 40).contains(integer) else { throw mistake("a number from 0 up") }
        return integer
    }

    func integer(in range: ClosedRange<Int>) throws -> Int {
        let integer = try integer()
        guard range.contains(integer) else { throw mistake("a number from \(range.lowerBound) to \(range.upperBound)") }
        return integer
    }

    func string() throws -> String {
        guard let string = value.string else { throw mistake("a string") }
        return string
    }

    func object() throws -> JSONObject {
        guard let object = value.object else { throw mistake("an object") }
        return object
    }

    func each<Value>(_ read: (JSONObject.Member) throws -> Value) throws -> [Value] {
        guard let array = value.array else { throw mistake("an array") }
        return try array.enumerated().map { try read(.init("\(name)[\($0.offset)]", $0.element)) }
    }

    func table<Value>(_ read: (JSONObject.Member) throws -> Value) throws -> [String: Value] {
        var values: [String: Value] = [:]
        for member in try object().members {
            values[member.name] = try read(.init("\(name).\(member.name)", member.value))
        }
        return values
    }

    func byEndpoint<Value>(_ read: (JSONObject.Member) throws -> Value) throws -> [String: Value] {
        for member in try object().members { _ = try member.endpoint(member.name) }
        return try table(read)
    }

    func required(_ key: String) throws -> JSONObject.Member {
        guard let member = try optional(key) else { throw mistake("a member \(key)") }
        return member
    }

    func optional(_ key: String) throws -> JSONObject.Member? { try object()[key].map { .init("\(name).\(key)", $0) } }

    func allow(_ keys: Set<String>) throws {
        if let unknown = try object().names.first(where: { !keys.contains($0) }) {
            throw mistake("only \(keys.sorted().joined(separator: ", ")), not \(unknown)")
        }
    }

    func endpoint(_ name: String) throws -> Endpoint {
        guard let endpoint = Endpoint(rawValue: name) else { throw mistake(Endpoint.names) }
        return endpoint
    }

    func userName(_ users: [SandboxUser]) throws -> String {
        let name = try string()
        guard users.contains(where: { $0.name == name }) else {
            throw mistake("true, false or one of " + users.map(\.name).joined(separator: ", "))
        }
        return name
    }
}
