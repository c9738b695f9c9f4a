import APIServer
import BrokerCore
import Configuration
import Desktop
import DesktopNotices
import Glibc
import KeptFiles
import Logging
import Records
import RingbackBase
import SessionVault

extension SignInNotices {
    /// The helper is the only process that reaches the desktop.
    init(_ broker: Broker, _ consents: ConsentDesk, _ helper: HelperConnection, _ logger: Logger) {
        let sentences = NoticeSentences(
            language: Language(environment: environmentVariables()), now: { BrokerClock.system.wallInstant })
        self.init(
            desktop: NoticeDesktop(helper, logger), signIns: SignIns(broker), sentences: sentences,
            answerConsent: { consents.answer($0, $1, forSession: $2) })
    }

    nonisolated func configure(_ configuration: DaemonConfiguration) {
        configure(
            isEnabled: configuration.showsNotices,
            accounts: configuration.accounts.compactMap { AccountName($0.name) },
            labels: configuration.accounts.reduce(into: [:]) { $0[$1.name] = $1.label })
    }
}

extension NoticeDesktop {
    fileprivate init(_ helper: HelperConnection, _ logger: Logger) {
        self.init(
            show: { notice, former in
                // Without a bus no notice can be shown, and the helper need not be asked.
                guard NoticeDesktop.hasBus else { return nil }
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
            open: { page, account, token in
                await helper.failure(ofOpening: page, account, token, logger) == nil
            }, news: { helper.noticeEvents() })
    }

    /// True if there is a bus where sd-bus would look. A bus may come at any time, so this is checked for every notice.
    private static var hasBus: Bool {
        if environment("DBUS_SESSION_BUS_ADDRESS") != nil { return true }
        guard let runtime = environment("XDG_RUNTIME_DIR") else { return false }
        return unsafe access("\(runtime)/bus", F_OK) == 0
    }
}

extension HelperConnection {
    /// Opens a page in the account's browser. Returns why it was not opened; nil if the browser was started.
    func failure(
        ofOpening page: String, _ account: AccountName, _ activationToken: String?, _ logger: Logger
    ) async -> String? {
        do throws(HelperError) {
            try await openPage(url: page, of: account.rawValue, activationToken: activationToken)
            return nil
        } catch {
            logger.warning("A sign-in page was not opened: \(error)")
            return "\(error)"
        }
    }
}

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
        let address = address ?? "unix:path=/run/dbus/system_bus_socket"
        guard address.hasPrefix(name), !address.contains(";") else { return nil }
        let path = String(address.dropFirst(name.count).prefix { $0 != "," })
        return unsafe access(path, F_OK) == 0 ? nil : path
    }
}

extension FileKeeper {
    convenience init(_ broker: Broker, state: String, _ records: RecordKeeper, _ logger: Logger) {
        self.init(broker, record: StateFile(directory: state, name: "kept-files.json")) { news in
            switch news {
            case .written(let file):
                records.audit.write(
                    "token_file_written",
                    ["account": file.account.rawValue, "path": file.path, "format": file.format.rawValue])
                logger.info("The file \(file.path) has a new token of \(file.account)")
            case .trouble(let file, let reason):
                logger.warning("The file \(file.path) of \(file.account): \(reason.sentence)")
            case .ended(let file): logger.info("The ttl of \(file.path) is over: the file is removed")
            case .mended(let file): logger.info("The file \(file.path) of \(file.account) is in order again")
            }
        }
    }

    func configure(_ configuration: DaemonConfiguration) {
        configure(configuration.keptFiles.compactMap(KeptFile.init))
    }
}

extension KeptFile {
    /// A table `[[file]]`. Nil for a name that the configuration would have refused.
    init?(_ file: FileConfiguration) {
        guard let account = AccountName(file.account) else { return nil }
        self.init(path: file.path, account: account, format: file.format)
        key = TokenKey(scopes: file.scopes, audience: file.audience)
        lifetime = file.lifetime.map { .seconds($0) }
        isDiskAllowed = file.isDiskAllowed
        if let host = file.host { self.host = host }
        if let username = file.username { self.username = username }
        if let variable = file.variable { self.variable = variable }
    }
}

extension ConsentDesk {
    func configure(_ configuration: DaemonConfiguration) {
        let rules = configuration.accounts.compactMap { account in
            AccountName(account.name).map { name in
                (
                    name,
                    Rule(configuration.consent(of: account), programs: Set(account.programs.map(ConsentDesk.resolved)))
                )
            }
        }
        configure(Dictionary(rules) { first, _ in first })
    }

    /// The path without links, as the kernel names an executable. One that does not exist stays as it is.
    private static func resolved(_ program: String) -> String {
        guard program.hasPrefix("/"), let found = unsafe realpath(program, nil) else { return program }
        defer { unsafe free(found) }
        return unsafe String(cString: found)
    }
}
