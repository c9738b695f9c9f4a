import BrokerCore
import DesktopBus
import Glibc
import Launcher
import Logging
import SessionVault

/// Locks the vault with the screen. Whoever asked for that is told wherever it cannot be: a lock that silently is none
/// is worse than none.
extension Freshness {
    func watchScreen() async {
        await broker.vaultSettled()
        if vault.status.kind == "memory" {
            logger.warning("lock_with_screen has no effect: the sessions are in memory alone, which cannot be locked")
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

/// Where the bus is that tells of the screen.
enum SystemBus {
    /// The socket's path, if nothing is there. Nil also for an address that names no path: then nobody can say.
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
