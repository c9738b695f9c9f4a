import Adapters
import RingbackBase
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

/// A name by which a tool starts `ringback`: a link in `~/.local/bin`.
struct HelperLink {
    let home: String
    private let name: String
    private let target: String

    init(named name: String, target: String) throws(RingbackError) {
        guard let home = SocketPlace.variable("HOME"), home.hasPrefix("/") else {
            throw RingbackError("no_place", "HOME is not the absolute path of a directory.")
        }
        self.home = home
        self.name = name
        self.target = target
    }

    var path: String { "\(home)/.local/bin/\(name)" }

    /// True if the tool finds this program by the name.
    var isFound: Bool { isFound(in: .own) }

    /// The same for a tool with another `PATH`.
    func isFound(in path: SearchPath) -> Bool { path.place(of: name).map(Programs.isSelf) == true }

    /// Makes the link, unless the name is found or the link is there.
    ///
    /// - Throws: `place_taken` if something else has its place.
    func change() throws(RingbackError) -> [SetupStep] {
        guard !isFound, !Programs.isSelf(path) else { return [] }
        guard !HomeFile.exists(path) else {
            throw RingbackError(
                "place_taken", "\(path) is no link to this program. Nothing was changed. Move it away.")
        }
        return [.link(path: path, target: target)]
    }

    /// Removes the link, if it leads to this program. What a package installed stays.
    func removal() -> [SetupStep] {
        Programs.isSelf(path) && !HomeFile.isRegular(path) ? [.removeLink(path: path)] : []
    }

    /// What to say if a tool does not find the link.
    var notes: [String] {
        let folder = SetupStep.folder(of: path)
        return isFound || SearchPath.own.folders.contains(folder)
            ? [] : ["\(folder) is not in PATH, where the tools look for \(name)."]
    }

    /// What to say if the tool finds the link when a shell starts it, and not when the user manager does, as for a program
    /// of the desktop.
    func note(ofManager path: SearchPath) -> String? {
        guard let place = Tool.place(of: name), isFound, !isFound(in: path) else { return nil }
        let folder = SetupStep.folder(of: place)
        return "Programs that the desktop starts do not find \(name): \(folder) is not in the PATH of the user "
            + "manager. Write PATH=\(folder):$PATH into ~/.config/environment.d/path.conf, and log in again."
    }
}

/// go: the command of `GOAUTH`, by `go env -w`. go asks Ringback for every server that refuses a request, after the
/// commands that are there already.
struct GoSetup: ToolSetup {
    let programs = ["go"]
    let needsProgramToUndo = true
    private let program: String

    init() throws(RingbackError) { program = try GoSetup.program() }

    func change(for targets: SetupTargets, account: String?) throws(RingbackError) -> SetupPlan {
        let origins = targets.origins
        guard origins.contains(where: { GoConfiguration.isUsable($0.rule) }) else {
            throw GoSetup.noOrigin(of: account, "go can ask for: one with https, without a user name")
        }
        let configuration = try configuration()
        guard !configuration.isOff else {
            throw RingbackError(
                "setup_failed", "GOAUTH is off, and go accepts no command beside that. Nothing was changed.")
        }
        guard let value = configuration.adding(program) else {
            throw RingbackError("setup_failed", "\(program) has a character that go splits a command at.")
        }
        guard GoConfiguration(value: value.utf8) != configuration else { return SetupPlan() }
        return plan([.command(["go", "env", "-w", "\(GoConfiguration.variable)=\(value)"])])
    }

    func removal(for targets: SetupTargets?, account: String?) throws(RingbackError) -> SetupPlan {
        switch try configuration().removal {
        case .nothing: return SetupPlan()
        case .unset: return plan([.command(["go", "env", "-u", GoConfiguration.variable])])
        case .set(let value): return plan([.command(["go", "env", "-w", "\(GoConfiguration.variable)=\(value)"])])
        }
    }

    func standing(for targets: SetupTargets) throws(RingbackError) -> ToolStanding {
        let origins = targets.origins
        let servers = origins.filter { GoConfiguration.isUsable($0.rule) }.map(\.rule.pattern.text)
        guard try configuration().isAsked else {
            return ToolStanding(servers: [], missing: servers.count, hasOther: false, notes: [])
        }
        return ToolStanding(servers: servers, missing: 0, hasOther: false, notes: [])
    }

    private func plan(_ steps: [SetupStep]) -> SetupPlan {
        var plan = SetupPlan(steps: steps)
        if SocketPlace.variable(GoConfiguration.variable)?.isEmpty == false {
            plan.notes.append("The variable GOAUTH is set in the environment, which takes precedence.")
        }
        return plan
    }

    private func configuration() throws(RingbackError) -> GoConfiguration {
        // Outside of a module: a version of go that a module names would be fetched first.
        GoConfiguration(value: try GoSetup.output(of: ["go", "-C", "/", "env", GoConfiguration.variable]))
    }
}
