import APIServer
import BrokerCore
import Configuration
import Glibc
import RingbackBase

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
