import BrokerCore
import Configuration
import DeepLinks
import Launcher
import Logging
import Records
import Secrets

extension DeepLinkRegistry {
    /// The daemon's registry of links. The helper starts the programs: it reads their names itself, and is given the
    /// link.
    convenience init(
        _ broker: Broker, helper: HelperConnection, work: Work, record: @escaping @Sendable (BrokerFact) -> Void,
        logger: Logger
    ) {
        self.init(broker: broker, work: work, record: record) { scheme, url in
            do throws(HelperError) {
                try await helper.startApplication(scheme: scheme, url: url)
                return nil
            } catch {
                logger.error("The app of the scheme \(scheme) was not started: \(error)")
                return "\(error)"
            }
        }
    }
}

extension LinkScheme {
    init(_ scheme: SchemeConfiguration) {
        self.init(name: scheme.name, hasCommand: scheme.command != nil, takesURL: scheme.takesURL)
    }
}
