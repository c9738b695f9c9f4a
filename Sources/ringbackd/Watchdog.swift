import BrokerCore
import Glibc
import LocalHTTP
import ServiceLifecycle

/// Tells systemd that the daemon lives (`WatchdogSec=`, sd_watchdog_enabled(3)), and only while it does: before each word
/// the thread of the sockets, the sessions and the flows have each taken a turn. What waits for a provider or a disk is
/// no reason to end a daemon, so neither the network nor the vault is asked.
struct Watchdog: Service {
    private let broker: Broker
    private let interval: Duration

    /// Nil where nobody watches. The variables are removed either way: what the daemon starts is not watched.
    init?(_ broker: Broker) {
        defer { for name in ["WATCHDOG_USEC", "WATCHDOG_PID"] { unsafe unsetenv(name) } }
        guard let patience = environment("WATCHDOG_USEC").flatMap(Int.init), patience > 0 else { return nil }
        if let pid = environment("WATCHDOG_PID"), Int32(pid) != getpid() { return nil }
        self.broker = broker
        // Three words in the time of one: a turn that comes late is not an end.
        interval = .microseconds(max(patience / 3, 10_000))
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            repeat {
                await HTTPServer.turn()
                _ = await broker.accounts()
                ServiceManager.notify("WATCHDOG=1")
                // systemd's clock stands still while the machine sleeps, and so does this one.
            } while (try? await Task.sleep(for: interval, clock: .suspending)) != nil
        }
    }
}
