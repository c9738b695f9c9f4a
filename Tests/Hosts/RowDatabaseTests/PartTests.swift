import PostgresClient
import RingbackBase
import SharedVault
import Testing

@testable import RowDatabase

/// What an administrator of the database may have written.
@Suite struct `Parts of rows with any numbers` {
    private func binary(_ number: Int64) -> [UInt8]? {
        (0..<8).reversed().map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }

    private func parts(version: Int64 = 1, epoch: Int64 = 0, parent: Int64 = 0) throws -> RowParts {
        let (key, id) = ([UInt8](repeating: 0, count: 32), [UInt8](repeating: 1, count: 16))
        return try RowParts(
            PostgresRows([
                [binary(1), key, nil, nil, binary(version), binary(epoch), nil, nil, [1], Array("slot".utf8)],
                [binary(3), key, id, nil, binary(parent), binary(epoch), binary(1), binary(0), [2], nil],
            ]))
    }

    @Test func `are refused if nothing could be added to them`() throws {
        #expect(try parts().rows.values.first?.candidates.count == 1)
        for number in [Int64.max, Int64.max - 1, 1 << 62, -1, Int64.min] {
            #expect(throws: DatabaseReason.malformed) { try parts(version: number) }
            #expect(throws: DatabaseReason.malformed) { try parts(epoch: number) }
            #expect(throws: DatabaseReason.malformed) { try parts(parent: number) }
        }
    }
}
