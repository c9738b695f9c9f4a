import Adapters
import HTTPMessages
import RingbackClient

/// cargo: an element of the list `registry.global-credential-providers` of its `config.toml`, for all registries. cargo
/// asks Ringback first, which sends it on for a registry that no origin names. cargo has no command that changes the
/// file.
struct CargoSetup: ToolSetup {
    let programs = ["cargo"]
    private let path: String
    private let provider: String

    private static let variable = "CARGO_REGISTRY_GLOBAL_CREDENTIAL_PROVIDERS"
    private static let header = "[\(CargoConfiguration.section)]"

    init() throws(RingbackError) {
        let usual = "\(try CargoSetup.home())/.cargo"
        let folder = CargoSetup.variable("CARGO_HOME") ?? usual
        // cargo prefers the name that its early versions used.
        path = HomeFile.exists("\(folder)/config") ? "\(folder)/config" : "\(folder)/config.toml"
        let program = try CargoSetup.program()
        guard let provider = CargoConfiguration.provider(running: program) else {
            throw RingbackError("setup_failed", "\(program) has a character that cargo splits a command at.")
        }
        self.provider = provider
    }

    func change(for targets: SetupTargets, account: String?) throws(RingbackError) -> SetupPlan {
        guard !servers(of: targets).isEmpty else {
            throw CargoSetup.noOrigin(of: account, "cargo can ask for: one with https, without a user name")
        }
        let (former, configuration) = try read()
        var plan = SetupPlan()
        if SocketPlace.variable(CargoSetup.variable)?.isEmpty == false {
            plan.notes.append("The variable \(CargoSetup.variable) is set in the environment, which takes precedence.")
        }
        guard configuration.ours.isEmpty else { return plan }
        var (changed, record) = (configuration, try SetupRecord())
        changed.add(provider)
        record.entries.add(line: provider, of: path)
        if !configuration.hasSection { record.entries.add(line: CargoSetup.header, of: path) }
        plan.steps = [replacement(of: former, by: changed, "add")]
        plan.record = record
        return plan
    }

    func removal(for targets: SetupTargets?, account: String?) throws(RingbackError) -> SetupPlan {
        let (former, configuration) = try read()
        var (changed, plan, record) = (configuration, SetupPlan(), try SetupRecord())
        for known in configuration.ours {
            guard record.entries.remove(line: known, of: path) else {
                plan.notes.append("\(path) has a provider that this command did not write. It stays: \(known)")
                continue
            }
            changed.remove(known, isSectionOurs: record.entries.remove(line: CargoSetup.header, of: path))
        }
        if changed != configuration { plan.steps = [replacement(of: former, by: changed, "remove")] }
        plan.record = record
        return plan
    }

    func standing(for targets: SetupTargets) throws(RingbackError) -> ToolStanding {
        let (configuration, servers) = (try read().configuration, servers(of: targets))
        guard !configuration.ours.isEmpty else {
            return ToolStanding(servers: [], missing: servers.count, hasOther: false, notes: [])
        }
        let isOtherFirst = configuration.isOtherFirst
        return ToolStanding(
            servers: servers, missing: 0, hasOther: isOtherFirst,
            notes: isOtherFirst ? ["\(path) has another provider behind Ringback, which cargo asks first."] : [])
    }

    private func servers(of targets: SetupTargets) -> [String] {
        targets.origins.filter { CargoConfiguration.isUsable($0.rule) }.map(\.rule.pattern.text)
    }

    private func read() throws(RingbackError) -> (former: [UInt8]?, configuration: CargoConfiguration) {
        let former = try HomeFile.contents(of: path)
        guard let configuration = CargoConfiguration(reading: former) else {
            throw RingbackError("setup_failed", "\(path) has a form that is not read here. Nothing was changed.")
        }
        return (former, configuration)
    }

    private func replacement(of former: [UInt8]?, by changed: CargoConfiguration, _ verb: String) -> SetupStep {
        let text = "\(path): \(verb) \"\(provider)\" in \(CargoConfiguration.section).\(CargoConfiguration.key)"
        return .replace(path: path, former: former, changed.bytes, text: text)
    }
}
