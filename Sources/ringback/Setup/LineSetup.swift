import Adapters
import HTTPMessages
import RingbackClient

/// Bazel, Terraform, OpenTofu and pnpm: a line of a file in the home directory for each server, or one for all, and a link
/// that the tool runs. None of them has a command that writes the line.
struct LineSetup: ToolSetup {
    let programs: [String]
    private let format: LineFormat
    private let path: String
    private let target: String
    /// What the tool is called in sentences.
    private let title: String

    static func bazel() throws(RingbackError) -> LineSetup {
        try LineSetup(["bazel", "bazelisk"], .bazel, "Bazel", at: "\(try home())/.bazelrc")
    }

    static func terraform() throws(RingbackError) -> LineSetup {
        let usual = "\(try home())/.terraformrc"
        let path = variable("TF_CLI_CONFIG_FILE", "TERRAFORM_CONFIG")
        return try LineSetup(["terraform"], .terraform, "Terraform", at: path ?? usual)
    }

    /// OpenTofu reads Terraform's file if it has none of its own.
    static func tofu() throws(RingbackError) -> LineSetup {
        let (home, path) = (try home(), variable("TF_CLI_CONFIG_FILE", "TERRAFORM_CONFIG"))
        let known = ["\(home)/.tofurc", "\(home)/.terraformrc"].first(where: HomeFile.exists)
        return try LineSetup(["tofu"], .terraform, "OpenTofu", at: path ?? known ?? "\(home)/.tofurc")
    }

    static func pnpm() throws(RingbackError) -> LineSetup {
        let usual = "\(try home())/.npmrc"
        let path = variable("npm_config_userconfig", "NPM_CONFIG_USERCONFIG")
        return try LineSetup(["pnpm"], .pnpm, "pnpm", at: path ?? usual)
    }

    private init(
        _ programs: [String], _ format: LineFormat, _ title: String, at path: String
    ) throws(RingbackError) {
        self.programs = programs
        self.format = format
        self.title = title
        self.path = path
        target = try LineSetup.program()
    }

    func change(for targets: SetupTargets, account: String?) throws(RingbackError) -> SetupPlan {
        let origins = targets.origins
        let wanted = lines(for: origins)
        guard !wanted.isEmpty else {
            let path = format == .pnpm ? "" : ", without a path"
            throw LineSetup.noOrigin(of: account, "\(title) can ask for: one with https\(path) and without a user name")
        }
        let (former, configuration) = try read()
        var (changed, plan, record, added) = (configuration, SetupPlan(), try SetupRecord(), [String]())
        var links: Set<String> = []
        for place in wanted {
            let (others, isThere) = settings(of: place, in: configuration)
            plan.notes += others.map { "\(path) has another setting for \(said(place)), which stays: \($0)" }
            // A second line would be an error, or would take its place.
            guard others.isEmpty || isThere else { continue }
            let link = try link(for: place)
            guard let line = format.line(for: place, running: link.path) else {
                throw RingbackError("setup_failed", "\(link.path) has a character that \(title) reads in another way.")
            }
            if links.insert(link.path).inserted {
                let steps = try link.making()
                if !steps.isEmpty { record.entries.add(link: link.path) }
                plan.steps += steps
            }
            guard !isThere else { continue }
            changed.add(line)
            added.append(line)
            record.entries.add(line: line, of: path)
        }
        if !added.isEmpty { plan.steps.append(replacement(of: former, by: changed, "add", added)) }
        plan.record = record
        if format.isForAll {
            let hosts = places(of: origins)
            plan.notes += configuration.settings.filter { hosts.contains($0.place) }.map {
                "\(path) has credentials for \($0.place), which \(title) uses in place of Ringback's."
            }
        }
        return plan
    }

    func removal(for targets: SetupTargets?, account: String?) throws(RingbackError) -> SetupPlan {
        let origins = targets?.origins
        // For one line for every server the account makes no difference.
        let wanted = format.isForAll ? nil : origins.map(lines)
        let (former, configuration) = try read()
        var (changed, plan, record, removed) = (
            configuration, SetupPlan(), try SetupRecord(), [LineConfiguration.Setting]()
        )
        for setting in configuration.settings where format.isOurs(setting) && wanted?.contains(setting.place) != false {
            guard record.entries.remove(line: setting.line, of: path) else {
                plan.notes.append("\(path) has a line that this command did not write. It stays: \(setting.line)")
                continue
            }
            changed.remove(setting.line)
            removed.append(setting)
        }
        if !removed.isEmpty {
            plan.steps.append(replacement(of: former, by: changed, "remove", removed.map(\.line)))
        }
        for setting in removed {
            let link = try link(for: setting.place)
            // Another line, or the same one in another file, may still need it.
            let names = changed.settings.filter(format.isOurs).map { format.program(for: $0.place) }
            guard !names.contains(format.program(for: setting.place)), !record.entries.has(line: setting.line),
                record.entries.remove(link: link.path)
            else { continue }
            plan.steps += link.removal()
        }
        plan.record = record
        return plan
    }

    func standing(for targets: SetupTargets) throws(RingbackError) -> ToolStanding {
        let origins = targets.origins
        let configuration = try read().configuration
        let (hosts, wanted) = (places(of: origins), lines(for: origins))
        var (missing, notes, others) = (0, [String](), [String]())
        let ours = configuration.settings.filter(format.isOurs)
        for place in wanted where !ours.contains(where: { $0.place == place }) { missing += 1 }
        for setting in ours {
            let link = try link(for: setting.place)
            if !Programs.isSelf(link.path) {
                missing += 1
                notes.append("\(link.path) is missing or is another program.")
            }
            guard !format.isForAll, !wanted.contains(setting.place) else { continue }
            notes.append(
                "\(path) names Ringback for \(setting.place), but no [[origin]] table without a user name names it.")
        }
        for setting in configuration.settings where !format.isOurs(setting) {
            guard wanted.contains(setting.place) || hosts.contains(setting.place) else { continue }
            others.append("\(path) has another setting for \(said(setting.place)): \(setting.helper)")
        }
        guard !ours.isEmpty else { return ToolStanding(servers: [], missing: missing, hasOther: false, notes: []) }
        let servers = format.isForAll ? hosts : ours.map(\.place)
        return ToolStanding(servers: servers, missing: missing, hasOther: !others.isEmpty, notes: notes + others)
    }

    /// What has a line: each place, or everything.
    private func lines(for origins: [OriginEntry]) -> [String] {
        let places = places(of: origins)
        return format.isForAll && !places.isEmpty ? [""] : places
    }

    private func places(of origins: [OriginEntry]) -> [String] {
        var seen: Set<String> = []
        return origins.compactMap { format.place(of: $0.rule) }.filter { seen.insert($0).inserted }
    }

    /// What others are named for a place, and whether Ringback is.
    private func settings(of place: String, in configuration: LineConfiguration) -> (others: [String], isThere: Bool) {
        let all = configuration.settings.filter { $0.place == place }
        return (all.filter { !format.isOurs($0) }.map(\.helper), all.contains(where: format.isOurs))
    }

    private func said(_ place: String) -> String { place.isEmpty ? "every server" : place }

    private func link(for place: String) throws(RingbackError) -> HelperLink {
        let folder = format == .terraform ? ".terraform.d/plugins" : ".local/bin"
        return try HelperLink(named: format.program(for: place), in: folder, target: target)
    }

    private func read() throws(RingbackError) -> (former: [UInt8]?, configuration: LineConfiguration) {
        let former = try HomeFile.contents(of: path)
        guard let configuration = LineConfiguration(reading: former, as: format) else {
            throw RingbackError("setup_failed", "\(path) has a form that is not read here. Nothing was changed.")
        }
        return (former, configuration)
    }

    private func replacement(
        of former: [UInt8]?, by changed: LineConfiguration, _ verb: String, _ lines: [String]
    ) -> SetupStep {
        .replace(path: path, former: former, changed.bytes, text: "\(path): \(verb) \(lines.joined(separator: "; "))")
    }
}
