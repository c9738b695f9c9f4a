import APIServer
import BrokerCore
import Configuration
import Glibc
import HTTPMessages
import Launcher
import SessionVault

extension Main {
    /// The certificates for an account that is about to be added, by the rules that hold for a configured one.
    @Sendable static func readCertificates(_ path: String) throws(UntrustedFile) -> ServerTrust {
        do throws(ConfigurationError) {
            return try ServerTrust(certificatesIn: path, user: geteuid())
        } catch {
            throw UntrustedFile(reason: error.message)
        }
    }
}

extension Account {
    /// An account that is not configured yet, by the rules that hold for a configured one.
    static func reader(
        _ place: ConfigurationPlace, helper: HelperConnection, vault: any Vault, credentials: Credentials
    ) -> @Sendable (AccountName, String) throws(UnusableAccount) -> Account {
        { name, text throws(UnusableAccount) in
            do throws(ConfigurationErrors) {
                let configuration = try AccountConfiguration.read(name.rawValue, in: text, at: place)
                let account = Account(configuration, helper: helper, vault: vault, credentials: credentials)
                guard let account else { throw ConfigurationErrors([]) }
                return account
            } catch {
                throw UnusableAccount(errors: error.errors.map(\.json))
            }
        }
    }
}
