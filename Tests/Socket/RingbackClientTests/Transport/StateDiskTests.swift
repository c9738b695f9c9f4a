import Testing

@testable import RingbackClient

@Suite struct `The disk of the state` {
    @Test(arguments: [(UInt32(0x6969), "NFS"), (0xFF53_4D42, "CIFS"), (0x00C3_6400, "Ceph")])
    func `of other machines too is told of, with a way out that lasts`(kind: UInt32, name: String) throws {
        let warning = try #require(StateDisk.warning("/home/a/.local/state/ringback", kind: kind))
        #expect(warning.hasPrefix("/home/a/.local/state/ringback is on \(name):"))
        #expect(warning.contains("Environment=RINGBACK_STATE=") && warning.contains("not below /tmp"))
    }

    @Test(arguments: [UInt32(0xEF53), 0x9123_683E, 0x0102_1994, 0])
    func `of this machine alone is well`(kind: UInt32) {
        #expect(StateDisk.warning("/home/a", kind: kind) == nil)
    }
}
