public import RingbackBase

public enum PostgresValue: Sendable, Equatable {
    case null
    case flag(Bool)
    case integer(Int64)
    case text(String)
    case bytes([UInt8])
    case bytesList([[UInt8]])

    /// The type's number in every PostgreSQL (pg_type.dat).
    var type: UInt32 {
        switch self {
        case .null: 0
        case .flag: 16
        case .bytes: 17
        case .integer: 20
        case .text: 25
        case .bytesList: 1_001
        }
    }

    /// The binary form; nil for SQL's null.
    var encoded: [UInt8]? {
        switch self {
        case .null: return nil
        case .flag(let value): return [value ? 1 : 0]
        case .bytes(let bytes): return bytes
        case .integer(let number): return Self.bigEndian(number)
        case .text(let text): return Array(text.utf8)
        case .bytesList(let list):
            // Dimensions, "has nulls", the elements' type; then per dimension its length and first index.
            var output = Self.bigEndian(Int32(list.isEmpty ? 0 : 1)) + Self.bigEndian(Int32(0))
            output += Self.bigEndian(Int32(17))
            guard !list.isEmpty else { return output }
            output += Self.bigEndian(Int32(list.count)) + Self.bigEndian(Int32(1))
            for bytes in list { output += Self.bigEndian(Int32(bytes.count)) + bytes }
            return output
        }
    }

    private static func bigEndian(_ number: some FixedWidthInteger) -> [UInt8] {
        stride(from: number.bitWidth - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) }
    }
}

public struct PostgresRows: Sendable, Equatable {
    public let rows: [[[UInt8]?]]
    public init(_ rows: [[[UInt8]?]]) { self.rows = rows }
    public var count: Int { rows.count }
    public subscript(_ row: Int) -> PostgresRow { PostgresRow(values: rows[row]) }
}

/// One row. Every function throws `malformed` if there is no such column, it is null, or it is not of that form.
public struct PostgresRow: Sendable, Equatable {
    public let values: [[UInt8]?]
    public init(values: [[UInt8]?]) { self.values = values }

    public func isNull(_ column: Int) throws(DatabaseReason) -> Bool {
        guard values.indices.contains(column) else { throw .malformed }
        return values[column] == nil
    }

    public func bytes(_ column: Int) throws(DatabaseReason) -> [UInt8] {
        guard values.indices.contains(column), let bytes = values[column] else { throw .malformed }
        return bytes
    }

    public func text(_ column: Int) throws(DatabaseReason) -> String {
        guard let text = String(validating: try bytes(column), as: UTF8.self) else { throw .malformed }
        return text
    }

    /// A number of 2, 4 or 8 bytes (int2, int4, int8).
    public func integer(_ column: Int) throws(DatabaseReason) -> Int64 {
        let bytes = try bytes(column)
        guard [2, 4, 8].contains(bytes.count) else { throw .malformed }
        let isNegative = bytes[0] & 0x80 != 0
        return bytes.reduce(isNegative ? -1 : 0) { $0 << 8 | Int64($1) }
    }

    public func flag(_ column: Int) throws(DatabaseReason) -> Bool {
        switch try bytes(column) {
        case [0]: return false
        case [1]: return true
        default: throw .malformed
        }
    }
}
