import BrokerCore
import DesktopBus
import Glibc
import Launcher
import Logging
import SessionVault

/// Locks the vault when the screen is locked. Whenever that cannot work it is logged, since the user asked for it and
/// relies on it.
extension Freshness {
    func watchScreen() async {
        await broker.vaultSettled()
        if broker.vault.status.kind == .memory {
            logger.warning("lock_with_screen has no effect: the sessions are in memory only, which cannot be locked")
        }
        if let path = SystemBus.missingSocket(named: environment("DBUS_SYSTEM_BUS_ADDRESS")) {
            logger.warning("lock_with_screen has no effect until there is a system bus: nothing is at \(path)")
        }
        for await _ in helper.events(.screenLocked) {
            do throws(BrokerError) {
                try await broker.lockVault()
                logger.info("The vault was locked with the screen")
            } catch {
                logger.error("The screen was locked, and the vault was not: \(error)")
            }
        }
    }
}

/// The system bus, which reports that the screen was locked.
enum SystemBus {
    /// The socket's path, if there is nothing at it. Nil also for an address without a path: then it cannot be told.
    static func missingSocket(named address: String?) -> String? {
        let name = "unix:path="
        let path: String
        if let address {
            guard address.hasPrefix(name), !address.contains(";") else { return nil }
            path = String(address.dropFirst(name.count).prefix { $0 != "," })
        } else {
            path = "/run/dbus/system_bus_socket"
        }
        return unsafe access(path, F_OK) == 0 ? nil : path
    }
}
