import Cryptography
import RingbackBase

@testable import SharedVault

/// What a person types as a host's code, what a host keeps of its joining, what the database shows of another host, and the
/// record of removed hosts.
enum JoiningLaw {
    private static let code = HostCode([UInt8](repeating: 7, count: 13))
    private static let agreement = Secret(bytes: [UInt8](repeating: 9, count: AgreementKey.length))

    static func check(_ bytes: [UInt8]) throws {
        let text = Secret(bytes: bytes)
        if let typed = HostCode(text) {
            try hold("a code is read as it is shown", HostCode(Secret(typed.revealed())) == typed)
            try hold("a code has four groups", typed.revealed().utf8.count == 23)
        }
        if let record = JoiningRecord(reading: text) {
            try hold("a record is read as it was written", JoiningRecord(reading: record.encoded()) == record)
        }
        if let record = RemovalRecord(reading: text) {
            try hold("removals are read as they were written", RemovalRecord(reading: record.encoded()) == record)
        }
        try hold("nothing proves itself", try code.publicKey(in: bytes, of: "role") == nil)
        let key = try AgreementKey(secret: agreement)
        try hold("nothing opens", try code.open(bytes, with: key, of: "role", owner: "ada") == nil)
    }
}
