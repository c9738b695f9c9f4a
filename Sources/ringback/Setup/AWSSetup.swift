import Adapters
import RingbackClient
import Terminal

/// AWS's tools and libraries: the `credential_process` of a profile in `~/.aws/config`, for each account with a role.
/// The profile has the account's name.
struct AWSSetup: ToolSetup {
    let programs = ["aws"]
    private let folder: String
    private let path: String
    private let credentials: String
    private let program: String

    init() throws(RingbackError) {
        folder = "\(try AWSSetup.home())/.aws"
        path = AWSSetup.variable("AWS_CONFIG_FILE") ?? "\(folder)/config"
        credentials = AWSSetup.variable("AWS_SHARED_CREDENTIALS_FILE") ?? "\(folder)/credentials"
        program = try AWSSetup.program()
    }

    /// True with the command line, and for libraries alone with their folder.
    var isInstalled: Bool { programs.contains(where: Tool.isInstalled) || HomeFile.exists(folder) }

    var adviceToInstall: String? {
        "For AWS's libraries alone, make their folder. Run: mkdir \(Shell.sh.quoted(folder))"
    }

    func change(for targets: SetupTargets, account: String?) throws(RingbackError) -> SetupPlan {
        guard !targets.roles.isEmpty else {
            throw RingbackError(
                .notFound,
                "The configuration names no AWS role\(account.map { " for \($0)" } ?? ""): "
                    + "[accounts.\(account ?? "NAME").aws]. Nothing was changed.")
        }
        let (former, configuration) = try read()
        var (changed, plan, record, added) = (configuration, SetupPlan(), try SetupRecord(), [String]())
        for role in targets.roles {
            plan.notes += try warnings(of: role, in: configuration)
            if let other = configuration.process(of: role) {
                // Only the program: its arguments may be secret.
                let name = other.split(separator: " ").first ?? ""
                if !configuration.isOurs(role) {
                    plan.notes.append(
                        "\(path) has another credential_process for the profile \(role), which stays: \(name)")
                }
                continue
            }
            guard let line = AWSProfiles.line(for: role, running: program) else {
                throw RingbackError("setup_failed", "\(program) has a character that AWS's tools split a command at.")
            }
            if !configuration.has(role) { record.entries.add(line: AWSSetup.mark(of: role), of: path) }
            changed.add(line, to: role)
            added.append("profile \(role): \(line)")
            record.entries.add(line: line, of: path)
        }
        if !added.isEmpty { plan.steps = [replacement(of: former, by: changed, "add", added)] }
        plan.record = record
        return plan
    }

    func removal(for targets: SetupTargets?, account: String?) throws(RingbackError) -> SetupPlan {
        let (former, configuration) = try read()
        var (changed, plan, record, removed) = (configuration, SetupPlan(), try SetupRecord(), [String]())
        for role in configuration.ours where account == nil || account == role {
            guard let line = configuration.line(of: role), record.entries.remove(line: line, of: path) else {
                plan.notes.append(
                    "\(path) has a line for the profile \(role) that this command did not write. It stays.")
                continue
            }
            changed.remove(
                line, from: role, isSectionOurs: record.entries.remove(line: AWSSetup.mark(of: role), of: path))
            removed.append("profile \(role): \(line)")
        }
        if !removed.isEmpty { plan.steps = [replacement(of: former, by: changed, "remove", removed)] }
        plan.record = record
        return plan
    }

    func standing(for targets: SetupTargets) throws(RingbackError) -> ToolStanding {
        let configuration = try read().configuration
        let ours = configuration.ours
        var notes = ours.filter { !targets.roles.contains($0) }.map {
            "\(path) names Ringback for the profile \($0), but the configuration has no AWS role for that account."
        }
        var others: [String] = []
        for role in ours { others += try warnings(of: role, in: configuration) }
        notes += others
        let missing = targets.roles.count { !ours.contains($0) }
        return ToolStanding(servers: ours, missing: missing, hasOther: !others.isEmpty, notes: notes)
    }

    /// What AWS's tools use in place of the profile's program.
    private func warnings(of role: String, in configuration: AWSProfiles) throws(RingbackError) -> [String] {
        var notes: [String] = []
        if AWSProfiles.hasKeys(for: role, in: try HomeFile.contents(of: credentials)) {
            notes.append(
                "\(credentials) has keys for the profile \(role), which AWS's tools use in place of Ringback's.")
        }
        if let key = configuration.earlierKey(of: role) {
            notes.append("\(path) has \(key) for the profile \(role), which AWS's tools use in place of Ringback's.")
        }
        return notes
    }

    /// How the list of what was written names a profile that was added as a whole.
    private static func mark(of role: String) -> String { "[profile \(role)]" }

    private func read() throws(RingbackError) -> (former: [UInt8]?, configuration: AWSProfiles) {
        let former = try HomeFile.contents(of: path)
        guard let configuration = AWSProfiles(reading: former) else {
            throw RingbackError("setup_failed", "\(path) has a form that is not read here. Nothing was changed.")
        }
        return (former, configuration)
    }

    private func replacement(
        of former: [UInt8]?, by changed: AWSProfiles, _ verb: String, _ lines: [String]
    ) -> SetupStep {
        .replace(path: path, former: former, changed.bytes, text: "\(path): \(verb) \(lines.joined(separator: "; "))")
    }
}
