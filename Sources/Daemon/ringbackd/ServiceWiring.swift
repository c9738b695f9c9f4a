import APIServer
import BrokerCore
import Configuration
import Glibc
import OAuth
import OAuthSignIn
import Secrets

extension ServiceGrant {
    /// Nil for an account that users sign in to.
    init?(_ account: AccountConfiguration) {
        guard let service = account.service else { return nil }
        self.init(
            service.grant, subjectType: service.subjectTokenType, assertion: AssertionSource(account),
            assertionPlace: service.assertionFile, audience: service.audience, resource: service.resource)
    }
}

extension ServiceGrant.AssertionSource {
    /// Nil without an assertion. It is read at every use, since the platform may replace it at any time.
    fileprivate init?(_ account: AccountConfiguration) {
        guard account.service?.assertionFile != nil else { return nil }
        self.init { () throws(BrokerError) in
            do throws(ConfigurationError) {
                if let assertion = try account.readAssertion(user: geteuid()) { return assertion }
            } catch {
                throw BrokerError(error)
            }
            throw .misconfigured(.stated("\(account.name) has no assertion."))
        }
    }
}

extension Account.KeySource {
    /// Nil if the key is no credential. It is read at every use too, since a service manager may replace it.
    init?(credentialOf account: AccountConfiguration, in credentials: Credentials) {
        guard let name = account.clientKeyCredential else { return nil }
        self.init { () throws(BrokerError) in
            let secret: Secret
            do throws(CredentialError) {
                secret = try credentials.secret(named: name)
            } catch {
                throw BrokerError(account.mistake(at: "client_key_file", error.reason), credential: name)
            }
            do throws(ConfigurationError) {
                return try account.clientKey(in: secret)
            } catch {
                throw BrokerError(error, credential: name)
            }
        }
    }
}

extension Account.SecretSource {
    /// A secret that was given to the daemon at its start.
    init(credential name: String, of account: AccountConfiguration, in credentials: Credentials) {
        self.init { () throws(BrokerError) in
            do throws(CredentialError) {
                return try credentials.secret(named: name)
            } catch {
                throw BrokerError(account.mistake(at: account.clientCredentialKey, error.reason), credential: name)
            }
        }
    }
}
