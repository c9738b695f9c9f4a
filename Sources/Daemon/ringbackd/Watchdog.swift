import BrokerCore
import Glibc
import LocalHTTP
import ServiceLifecycle

/// Tells systemd that the daemon works (`WatchdogSec=`, sd_watchdog_enabled(3)), and only while it does: before each
/// message the sockets' thread, the session manager and the flow registry have each run a turn. Waiting for a provider
/// or a disk must not end the daemon, so neither the network nor the vault is asked.
struct Watchdog: Service {
    private let broker: Broker
    private let interval: Duration

    /// Nil if systemd does not watch. The variables are removed in any case: what the daemon starts is not watched.
    init?(_ broker: Broker) {
        defer { for name in ["WATCHDOG_USEC", "WATCHDOG_PID"] { unsafe unsetenv(name) } }
        guard let patience = environment("WATCHDOG_USEC").flatMap(Int.init), patience > 0 else { return nil }
        if let pid = environment("WATCHDOG_PID"), Int32(pid) != getpid() { return nil }
        self.broker = broker
        // Three messages in the allowed time, so that one that is late does not end the daemon.
        interval = .microseconds(max(patience / 3, 10_000))
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            repeat {
                await HTTPServer.turn()
                _ = await broker.accounts()
                ServiceManager.notify("WATCHDOG=1")
                // systemd's clock stops while the machine is suspended, and so does this one.
            } while (try? await Task.sleep(for: interval, clock: .suspending)) != nil
        }
    }
}
