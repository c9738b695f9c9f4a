@testable import SessionVault

/// Who holds the state directory, as a lock file says: what is written is read as the same, and can be shown.
enum LeaseLaw {
    static func check(_ bytes: [UInt8]) throws {
        guard let lease = StateLease(parsing: bytes) else { return }
        try hold("a host can be shown", lease.host.isPrintableASCII && (1...255).contains(lease.host.utf8.count))
        try hold("a process has a number", lease.pid > 0)
        let written = lease.serialized()
        try hold("what is written is read as the same", StateLease(parsing: written) == lease)
        try hold("it ends in a line's end", written.last == 0x0A && written.count >= StateLease.size)
        _ = lease.isAlive
    }
}
