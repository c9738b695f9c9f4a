import APIServer
import BrokerCore
import Configuration
import KeptFiles
import Logging
import Records
import RingbackBase
import SessionVault

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
        guard let account = AccountName(file.account), let format = Format(rawValue: file.format.rawValue) else {
            return nil
        }
        self.init(path: file.path, account: account, format: format)
        key = TokenKey(scopes: file.scopes, audience: file.audience)
        lifetime = file.lifetime.map { .seconds($0) }
        isDiskAllowed = file.isDiskAllowed
        if let host = file.host { self.host = host }
        if let username = file.username { self.username = username }
        if let variable = file.variable { self.variable = variable }
    }
}
