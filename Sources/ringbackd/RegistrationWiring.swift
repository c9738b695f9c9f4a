import APIServer
import Configuration
import Glibc
import HTTPMessages

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
