import Adapters
import RingbackBase
import RingbackClient

/// git: a credential helper for the server of each origin, in the user's own configuration, by `git config`. An empty
/// value before it removes the helpers that git inherits for the server: they would store our token and give it when it
/// has expired.
struct GitSetup: ToolSetup {
    let programs = ["git"]
    let needsProgramToUndo = true
    private let value: String

    init() throws(RingbackError) {
        value = GitConfiguration.value(quoted: Shell.sh.quoted(try GitSetup.program()))
    }

    private static let config = ["git", "config", "--global"]

    func change(for targets: SetupTargets, account: String?) throws(RingbackError) -> SetupPlan {
        let origins = targets.origins
        let usable = origins.map(\.rule.pattern).filter(GitConfiguration.isUsable)
        guard !usable.isEmpty else { throw GitSetup.noOrigin(of: account, "git can ask for") }
        let changes = try all().changes(for: usable, value: value, in: try file())
        return SetupPlan(steps: changes.map(GitSetup.step))
    }

    func removal(for targets: SetupTargets?, account: String?) throws(RingbackError) -> SetupPlan {
        let origins = targets?.origins
        return SetupPlan(steps: try file().removals(of: origins?.map(\.rule.pattern)).map(GitSetup.step))
    }

    func standing(for targets: SetupTargets) throws(RingbackError) -> ToolStanding {
        let origins = targets.origins
        let all = try all()
        var (servers, notes, missing, hasOther) = ([String](), [String](), 0, false)
        for origin in origins where GitConfiguration.isUsable(origin.rule.pattern) {
            let text = origin.rule.pattern.text
            let standing = all.standing(for: origin.rule.pattern)
            guard standing.isAsked else {
                missing += 1
                continue
            }
            servers.append(text)
            if let other = standing.before.first {
                notes.append("For \(text) git asks another helper first: \(GitSetup.shown(other))")
                hasOther = true
            }
            if let other = standing.after.first {
                notes.append(
                    "For \(text) another helper stores the tokens, also when they have expired: \(GitSetup.shown(other))"
                )
                hasOther = true
            }
            if !standing.namesPath {
                notes.append(
                    "git asks without the path of \(text), so Ringback finds no token. Set credential.useHttpPath."
                )
                missing += 1
            }
        }
        let known = Set(origins.map { String($0.rule.pattern.text.dropLast("/*".count)) })
        for url in all.writtenURLs where !known.contains(url) {
            notes.append("git asks Ringback for \(url), but no [[origin]] table names that server.")
        }
        return ToolStanding(servers: servers, missing: missing, hasOther: hasOther, notes: notes)
    }

    /// The name of a helper. A shell command is not shown, since it may have a password in it.
    private static func shown(_ helper: String) -> String {
        helper.hasPrefix("!") ? "a shell command" : String(helper.prefix { $0 != " " })
    }

    private static func step(_ change: GitConfiguration.Change) -> SetupStep {
        switch change {
        case .add(let key, let value): .command(config + ["--add", key, value])
        case .remove(let key, let value): .command(config + ["--fixed-value", "--unset-all", key, value])
        case .removeAll(let key): .command(config + ["--unset-all", key])
        }
    }

    /// What git reads outside of a repository.
    private func all() throws(RingbackError) -> GitConfiguration { try entries(["git", "-C", "/", "config"]) }

    /// What the file has that `git config --global` changes.
    private func file() throws(RingbackError) -> GitConfiguration { try entries(GitSetup.config) }

    private func entries(_ words: [String]) throws(RingbackError) -> GitConfiguration {
        // The status is 1 if there is no such variable.
        let listing = try GitSetup.output(of: words + ["-z", "--get-regexp", #"^credential\."#], statuses: [0, 1])
        return GitConfiguration(listing: listing)
    }
}
