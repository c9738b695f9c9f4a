/// Whether the daemon's state is on a file system of another machine. Two daemons on two hosts with one state directory
/// would use up each other's refresh tokens.
package enum StateDisk {
    /// File systems of other machines, by the magic numbers of statfs(2).
    private static let remote: [UInt32: String] = [
        0x6969: "NFS", 0xFF53_4D42: "CIFS", 0xFE53_4D42: "SMB", 0x517B: "SMB", 0x7375_7245: "Coda",
        0x5346_414F: "AFS", 0x6B41_4653: "AFS", 0x00C3_6400: "Ceph", 0x0BD0_0BD0: "Lustre", 0x0102_1997: "9P",
    ]

    /// What the user should know of a state directory on a file system of this kind; nil for a local one.
    package static func warning(_ path: String, kind: UInt32) -> String? {
        guard let name = remote[kind] else { return nil }
        return
            "\(path) is on \(name): only one host at a time can run the daemon; on another one it says who does. Set "
            + "Environment=RINGBACK_STATE= to a directory of yours on a local disk, not below /tmp or /var/tmp."
    }
}
