import BrokerCore
import Configuration
import DesktopBus
import DesktopNotices
import Glibc
import Launcher
import Logging
import ServiceLifecycle

/// Joins the board of notices to the broker, whose facts it hears and which must exist before it, and to the helper,
/// which alone reaches the desktop.
final class Notices: Service, Sendable {
    private let snapshot = OnceBox<NoticeBoard>()

    /// What the daemon's end gives the desktop to take down what nobody answers to any more.
    private static let farewell: Duration = .milliseconds(500)

    func connect(_ broker: Broker, _ helper: HelperConnection, _ logger: Logger) {
        let words = NoticeWords(
            language: NoticeWords.Language(environment: environmentVariables()), now: BrokerClock.system.now)
        snapshot.set(NoticeBoard(desktop: Desktop(helper, logger), signIns: SignIns(broker), words: words))
    }

    @Sendable func note(_ fact: BrokerFact) { snapshot.value?.note(fact) }

    func configure(_ configuration: DaemonConfiguration) {
        snapshot.value?.configure(
            isEnabled: configuration.showsNotices,
            accounts: configuration.accounts.compactMap { AccountName($0.name) })
    }

    /// Tells the person what came of a callback; true if a notice says it.
    @Sendable func tell(_ verdict: CallbackVerdict, of account: AccountName?, message: String?) async -> Bool {
        await snapshot.value?.tell(verdict, of: account, message: message) ?? false
    }

    func run() async throws {
        guard let snapshot = snapshot.value else { return }
        await withDiscardingTaskGroup { group in
            group.addTask { await snapshot.run() }
            try? await gracefulShutdown()
            await snapshot.leave(atMost: Notices.farewell)
            group.cancelAll()
        }
    }
}

extension Desktop {
    fileprivate init(_ helper: HelperConnection, _ logger: Logger) {
        self.init(
            show: { notice, former in
                // Without a bus there is nobody to ask, and no reason to wake the helper.
                guard Desktop.hasBus else { return nil }
                do throws(HelperError) {
                    switch try await helper.notify(notice, replacing: former) {
                    case .shown(let shown): return shown
                    case .notShown(let reason): logger.debug("A notice was not shown: \(reason)")
                    }
                } catch {
                    logger.warning("A notice was not shown: \(error)")
                }
                return nil
            },
            close: { try? await helper.closeNotice($0) },
            open: { page, token in
                do throws(HelperError) {
                    try await helper.openPage(url: page, activationToken: token)
                    return true
                } catch {
                    logger.warning("A sign-in page was not opened: \(error)")
                    return false
                }
            }, news: { helper.noticeEvents() })
    }

    /// Where sd-bus would look. A bus may come at any time: this is asked for every notice.
    private static var hasBus: Bool {
        if environment("DBUS_SESSION_BUS_ADDRESS") != nil { return true }
        guard let runtime = environment("XDG_RUNTIME_DIR") else { return false }
        return unsafe access("\(runtime)/bus", F_OK) == 0
    }
}
