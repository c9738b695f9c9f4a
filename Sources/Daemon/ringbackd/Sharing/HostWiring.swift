import APIServer
import Glibc
import PostgresClient
import Secrets
import SessionVault
import SharedVault

/// The hosts that share the vault, for the socket API.
struct DaemonHosts: VaultHosts {
    let sharing: Sharing
    let url: PostgresURL

    func join(as name: String?, invitation: Secret?) async throws(SharingFailure) -> JoinedHost {
        try await sharing.join(as: name, otherwise: DaemonHosts.machineName, invitation: invitation)
    }

    func invite(lasting: Duration) async throws(SharingFailure) -> HostInvitation {
        let invitation = try await sharing.invite(lasting: lasting)
        return HostInvitation(
            role: invitation.role, password: invitation.password, store: url.text(for: invitation.role))
    }

    func share(with code: HostCode) async throws(SharingFailure) -> String { try await sharing.share(with: code) }

    func list() async throws(SharingFailure) -> [Host] { try await sharing.list() }

    func remove(host: String) async throws(SharingFailure) -> String { try await sharing.remove(host: host) }

    func isStale(_ slot: VaultSlot) async -> Bool { await sharing.isStale(slot) }

    func refreshStale() { sharing.lookAtRemovals() }

    /// The machine's name as a host's: letters, digits, dots and hyphens.
    private static var machineName: String {
        var name = utsname()
        unsafe uname(&name)
        let bytes = unsafe withUnsafeBytes(of: &name.nodename) { unsafe Array($0.prefix { $0 != 0 }) }
        let letters = bytes.filter { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"):
                true
            default: false
            }
        }.drop { $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "-") }
        return letters.isEmpty ? "host" : String(decoding: letters.prefix(64), as: UTF8.self)
    }
}
