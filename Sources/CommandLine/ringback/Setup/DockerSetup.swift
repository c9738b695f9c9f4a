import Adapters
import HTTPMessages
import RingbackClient

/// docker: an entry of `credHelpers` for each registry. docker has no command that writes `credHelpers`, so its
/// `config.json` is changed here. docker starts the helper as `docker-credential-ringback`, so a link of that name is
/// made. podman and skopeo read the same file if they have none of their own.
struct DockerSetup: ToolSetup {
    let programs = ["docker", "podman", "skopeo"]
    private let path: String
    private let link: HelperLink

    init() throws(RingbackError) {
        link = try HelperLink(named: "docker-credential-ringback", target: try DockerSetup.program())
        let folder = SocketPlace.variable("DOCKER_CONFIG").flatMap { $0.isEmpty ? nil : $0 } ?? "\(link.home)/.docker"
        path = folder + "/config.json"
    }

    var linkInPath: HelperLink? { link }

    /// - Returns: the file's bytes (nil if there is no file) and its parsed content.
    private func read() throws(RingbackError) -> (former: [UInt8]?, configuration: DockerConfiguration) {
        let former = try HomeFile.contents(of: path)
        do throws(DockerConfiguration.Failure) {
            return (former, try DockerConfiguration(reading: former))
        } catch {
            let reason =
                switch error {
                case .notAnObject: "is not a JSON object without repeated members"
                case .helpersUnreadable: "has a credHelpers whose values are not all texts"
                }
            throw RingbackError("setup_failed", "\(path) \(reason). Nothing was changed.")
        }
    }

    func change(for targets: SetupTargets, account: String?) throws(RingbackError) -> SetupPlan {
        let origins = targets.origins
        let registries = DockerSetup.registries(of: origins)
        guard !registries.isEmpty else {
            throw DockerSetup.noOrigin(
                of: account, "docker can ask for: one with https, without a path and a user name")
        }
        let (former, configuration) = try read()
        var (changed, plan, added) = (configuration, SetupPlan(), [String]())
        for registry in registries {
            if let other = configuration.otherHelper(of: registry) {
                plan.notes.append("\(path) has another helper for \(registry), which stays: \(other)")
            } else if !configuration.registries.contains(registry) {
                changed.add(registry)
                added.append(registry)
            }
        }
        guard registries.contains(where: changed.registries.contains) else { return plan }
        var record = try SetupRecord()
        plan.steps = try link.change()
        if !plan.steps.isEmpty { record.entries.add(link: link.path) }
        if !added.isEmpty {
            for registry in added { record.entries.add(registry: registry, of: path) }
            plan.steps.append(
                .replace(path: path, former: former, changed.bytes, text: text("add", added)))
        }
        plan.record = record
        plan.notes += link.notes
        return plan
    }

    func removal(for targets: SetupTargets?, account: String?) throws(RingbackError) -> SetupPlan {
        let origins = targets?.origins
        let wanted = origins.map(DockerSetup.registries)
        let (former, configuration) = try read()
        var (changed, plan, record, removed) = (configuration, SetupPlan(), try SetupRecord(), [String]())
        for registry in configuration.registries where wanted?.contains(registry) != false {
            guard record.entries.remove(registry: registry, of: path) else {
                plan.notes.append("\(path) names Ringback for \(registry), which this command did not write. It stays.")
                continue
            }
            changed.remove(registry)
            removed.append(registry)
        }
        if !removed.isEmpty {
            plan.steps.append(.replace(path: path, former: former, changed.bytes, text: text("remove", removed)))
        }
        // Other registries may still need the link.
        if changed.registries.isEmpty, record.entries.remove(link: link.path) { plan.steps += link.removal() }
        plan.record = record
        return plan
    }

    func standing(for targets: SetupTargets) throws(RingbackError) -> ToolStanding {
        let origins = targets.origins
        let registries = DockerSetup.registries(of: origins)
        let configuration = try read().configuration
        let servers = configuration.registries
        var notes = servers.filter { !registries.contains($0) }.map {
            "\(path) names Ringback for \($0), but no [[origin]] table names that server."
        }
        let others = registries.compactMap { registry in
            configuration.otherHelper(of: registry).map { "\(path) has another helper for \(registry): \($0)" }
        }
        if !servers.isEmpty {
            notes += others
            if !link.isFound {
                notes.append("docker-credential-ringback in PATH is missing or is another program.")
            }
        }
        let missing = registries.count { !servers.contains($0) }
        return ToolStanding(
            servers: servers, missing: missing + (link.isFound ? 0 : 1), hasOther: !servers.isEmpty && !others.isEmpty,
            notes: notes)
    }

    private func text(_ verb: String, _ registries: [String]) -> String {
        "\(path): \(verb) credHelpers " + registries.map { "\"\($0)\": \"ringback\"" }.joined(separator: ", ")
    }

    private static func registries(of origins: [OriginEntry]) -> [String] {
        var seen: Set<String> = []
        return origins.compactMap { DockerConfiguration.registry(of: $0.rule) }.filter { seen.insert($0).inserted }
    }
}
