import PostgresClient
import RowDatabase
import SharedVault

/// What a database returns for rows: values with a byte each for the length, 255 for null; ten make a line.
enum SharedRowLaw {
    static func check(_ bytes: [UInt8]) throws {
        var values: [[UInt8]?] = []
        var rest = bytes[...]
        while let length = rest.popFirst() {
            values.append(length == 255 ? nil : Array(rest.prefix(Int(length))))
            if length != 255 { rest = rest.dropFirst(Int(length)) }
        }
        let lines = stride(from: 0, to: values.count, by: 10).map { Array(values[$0..<min($0 + 10, values.count)]) }
        guard let parts = try? RowParts(PostgresRows(lines)) else { return }
        for (key, row) in parts.rows {
            try hold("a row is at its key", row.key == key && key.bytes.count == 32)
            try hold("versions begin with 1, epochs with 0", row.version >= 1 && row.epoch >= 0)
            let ids = row.openAttempts.map(\.id) + row.candidates.map(\.attempt) + (row.lease.map { [$0.id] } ?? [])
            try hold("leases have names of 16 bytes", ids.allSatisfy { $0.bytes.count == 16 })
            try hold(
                "no time is negative",
                row.openAttempts.allSatisfy { $0.age >= .zero } && row.lease?.left ?? .zero >= .zero)
            let ages = row.openAttempts.map(\.age)
            try hold("attempts are in order", ages == ages.sorted())
        }
        let lineKinds = lines.count { $0.count == 10 }
        try hold("nothing is made up", parts.rows.count <= lineKinds && parts.slots.count <= lineKinds)
    }
}
