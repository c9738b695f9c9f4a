public import PostgresClient
public import RingbackBase
public import SharedVault

/// What the functions of the schema return: the rows of the type `ringback.part`, put together.
public struct RowParts: Sendable, Equatable {
    /// What a function says of itself; nil if it says nothing.
    public private(set) var isDone: Bool?
    public private(set) var rows: [RowKey: SharedRow] = [:]
    /// The names by which notifications name rows.
    public private(set) var slots: [String: RowKey] = [:]

    /// Throws `malformed` if a value is missing or not of its form.
    public init(_ result: PostgresRows) throws(DatabaseReason) {
        var attempts: [RowKey: [SharedRow.Attempt]] = [:]
        var candidates: [RowKey: [(age: Int64, content: SharedRow.Candidate)]] = [:]
        for values in result.rows {
            let part = PostgresRow(values: values)
            guard part.values.count == 10 else { throw .malformed }
            let key = RowKey(bytes: try part.bytes(1, count: 32))
            switch try part.integer(0) {
            case 0: isDone = try part.integer(4) == 1
            case 1: try add(part, key)
            case 2: attempts[key, default: []].append(try .init(part))
            case 3: candidates[key, default: []].append((try part.integer(7), try .init(part)))
            default: throw .malformed
            }
        }
        for (key, list) in attempts {
            guard rows[key] != nil else { throw .malformed }
            rows[key]?.openAttempts = list.sorted { $0.age < $1.age }
        }
        for (key, list) in candidates {
            guard rows[key] != nil else { throw .malformed }
            rows[key]?.candidates = list.sorted { ($0.age, $1.content.step) < ($1.age, $0.content.step) }.map(\.content)
        }
    }

    private mutating func add(_ part: PostgresRow, _ key: RowKey) throws(DatabaseReason) {
        var row = SharedRow(
            key: key, version: try part.number(4), epoch: try part.number(5), sealed: try part.bytes(8))
        guard row.version > 0, rows[key] == nil else { throw .malformed }
        if try !part.isNull(2) {
            row.lease = .init(
                id: LeaseID(bytes: try part.bytes(2, count: 16)), host: try part.isNull(3) ? "" : part.text(3),
                left: try part.milliseconds(7))
        }
        rows[key] = row
        slots[try part.text(9)] = key
    }
}

extension SharedRow.Attempt {
    fileprivate init(_ part: PostgresRow) throws(DatabaseReason) {
        self.init(
            id: LeaseID(bytes: try part.bytes(2, count: 16)), host: try part.text(3),
            parentVersion: try part.number(4), intent: try part.bytes(8), age: try part.milliseconds(7))
    }
}

extension SharedRow.Candidate {
    fileprivate init(_ part: PostgresRow) throws(DatabaseReason) {
        guard let step = Int(exactly: try part.integer(6)) else { throw .malformed }
        self.init(
            attempt: LeaseID(bytes: try part.bytes(2, count: 16)), step: step, parentVersion: try part.number(4),
            epoch: try part.number(5), sealed: try part.bytes(8))
    }
}

extension PostgresRow {
    fileprivate func bytes(_ column: Int, count: Int) throws(DatabaseReason) -> [UInt8] {
        let bytes = try bytes(column)
        guard bytes.count == count else { throw .malformed }
        return bytes
    }

    /// A version or an epoch. An administrator may have written any number: to this one can be added.
    fileprivate func number(_ column: Int) throws(DatabaseReason) -> Int64 {
        let number = try integer(column)
        guard (0..<1 << 62).contains(number) else { throw .malformed }
        return number
    }

    /// Not negative: the server's clock may have been set back.
    fileprivate func milliseconds(_ column: Int) throws(DatabaseReason) -> Duration {
        .milliseconds(max(try integer(column), 0))
    }
}
