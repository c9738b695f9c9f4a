import Glibc
import RingbackBase
import SessionVault

/// Reasons for vaults that fail as told.
extension VaultReason {
    static let diskFull = failed(ENOSPC)
    static let readOnly = failed(EROFS)
    static let diskBroken = failed(EIO)
    static let keyringLocked = VaultReason.keptBy(.secretService, .keyringLocked)
    static let ofNewerVersion = VaultReason.newer(path: "/state/vault/a", version: 2)
    static let setAside = VaultReason.damaged(
        path: "/state/vault/a", .changed, kind: .session, place: "/state/vault/a.damaged-1")

    private static func failed(_ code: Int32) -> VaultReason {
        .file(FileFailure(action: .write, path: "/state/vault/a", code: code))
    }
}
