import APIServer
import Configuration
import Glibc
import HTTPMessages

extension Main {
    /// The certificates for an account to come, by the rules that hold for a configured one.
    @Sendable static func readCertificates(_ path: String) throws(UntrustedFile) -> ServerTrust {
        do throws(ConfigurationError) {
            return try ServerTrust(certificatesIn: path, user: geteuid())
        } catch {
            throw UntrustedFile(reason: error.message)
        }
    }
}
