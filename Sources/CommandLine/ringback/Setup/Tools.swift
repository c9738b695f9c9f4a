import Adapters
import RingbackBase
import RingbackClient
import Terminal

extension [OriginEntry] {
    /// What git and docker are set up for. Clusters check ID tokens.
    fileprivate var withAccessTokens: [OriginEntry] { filter { $0.kind == .accessToken } }
}

/// git: a credential helper for the server of each origin, in the user's own configuration, by `git config`. An empty
/// value before it removes the helpers that git inherits for the server: they would store our token and give it when it
/// has expired. They are named after it again, and run once Ringback is removed.
struct GitSetup: ToolSetup {
    let programs = ["git"]
    let needsProgramToUndo = true
    private let program: String

    init() throws(RingbackError) { program = Shell.sh.quoted(try GitSetup.program()) }

    private static let config = ["git", "config", "--global"]

    func change(for origins: [OriginEntry], account: String?) throws(RingbackError) -> SetupPlan {
        let usable = origins.withAccessTokens.map(\.rule.pattern).filter(GitConfiguration.isUsable)
        guard !usable.isEmpty else { throw GitSetup.noOrigin(of: account, "git can ask for: one for an access token") }
        let changes = try all().changes(for: usable, program: program, in: try file())
        return SetupPlan(steps: changes.map(GitSetup.step))
    }

    func removal(for origins: [OriginEntry]?, account: String?) throws(RingbackError) -> SetupPlan {
        SetupPlan(steps: try file().removals(of: origins?.map(\.rule.pattern)).map(GitSetup.step))
    }

    func standing(for origins: [OriginEntry]) throws(RingbackError) -> ToolStanding {
        let all = try all()
        var (servers, notes, missing, hasOther) = ([String](), [String](), 0, false)
        for origin in origins.withAccessTokens where GitConfiguration.isUsable(origin.rule.pattern) {
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
                    "git asks without the path of \(text), so Ringback finds no token. Set credential.useHttpPath.")
                missing += 1
            }
        }
        let known = Set(origins.map { String($0.rule.pattern.text.dropLast("/*".count)) })
        for url in all.writtenURLs where !known.contains(url) {
            notes.append("git asks Ringback for \(url), but no [[origin]] table names that server.")
        }
        return ToolStanding(servers: servers, missing: missing, hasOther: hasOther, notes: notes)
    }

    /// A shell command is not shown, since it may have a password in it.
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

    private func all() throws(RingbackError) -> GitConfiguration { try entries(["git", "-C", "/", "config"]) }

    private func file() throws(RingbackError) -> GitConfiguration { try entries(GitSetup.config) }

    private func entries(_ words: [String]) throws(RingbackError) -> GitConfiguration {
        // The status is 1 if there is no such variable.
        let listing = try GitSetup.output(of: words + ["-z", "--get-regexp", #"^credential\."#], statuses: [0, 1])
        return GitConfiguration(listing: listing)
    }
}

/// go: the command of `GOAUTH`, by `go env -w`. go asks Ringback for every server that refuses a request, after the
/// commands that are there already.
struct GoSetup: ToolSetup {
    let programs = ["go"]
    let needsProgramToUndo = true
    private let program: String

    init() throws(RingbackError) { program = try GoSetup.program() }

    func change(for origins: [OriginEntry], account: String?) throws(RingbackError) -> SetupPlan {
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

    func removal(for origins: [OriginEntry]?, account: String?) throws(RingbackError) -> SetupPlan {
        switch try configuration().removal {
        case .nothing: return SetupPlan()
        case .unset: return plan([.command(["go", "env", "-u", GoConfiguration.variable])])
        case .set(let value): return plan([.command(["go", "env", "-w", "\(GoConfiguration.variable)=\(value)"])])
        }
    }

    func standing(for origins: [OriginEntry]) throws(RingbackError) -> ToolStanding {
        let servers = origins.filter { GoConfiguration.isUsable($0.rule) }.map(\.rule.pattern.text)
        let isAsked = try configuration().isAsked
        return ToolStanding(
            servers: isAsked ? servers : [], missing: isAsked ? 0 : servers.count, hasOther: false, notes: [])
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

/// kubectl: a user of the kubeconfig whose credential plugin is Ringback, by `kubectl config`. The contexts that are to
/// use it are named; the user chooses, since a context has only one user.
struct KubectlSetup: ToolSetup {
    let programs = ["kubectl"]
    let needsProgramToUndo = true
    private let program: String

    init() throws(RingbackError) { program = try KubectlSetup.program() }

    func change(for origins: [OriginEntry], account: String?) throws(RingbackError) -> SetupPlan {
        guard account != nil || !origins.isEmpty else {
            throw KubectlSetup.noOrigin(of: nil, "a cluster's server could belong to")
        }
        let configuration = try configuration()
        let name = KubectlConfiguration.userName(account: account)
        let plugin = KubectlConfiguration.plugin(program, account: account)
        var plan = SetupPlan()
        let known = configuration.users.first { $0.name == name }
        if let known, !known.isWritten {
            throw RingbackError(
                "place_taken", "The kubeconfig has a user \(name) that this command did not write. Nothing was changed."
            )
        }
        if known?.plugin != plugin {
            let help = try KubectlSetup.output(of: ["kubectl", "config", "set-credentials", "--help"])
            guard String(decoding: help, as: UTF8.self).contains("--exec-provide-cluster-info") else {
                throw KubectlSetup.cannotWrite(name, plugin, configuration)
            }
            // Of a user that is there, kubectl replaces the command and all of its arguments.
            let words = [
                "kubectl", "config", "set-credentials", name, "--exec-api-version=client.authentication.k8s.io/v1",
                "--exec-command=\(program)", "--exec-interactive-mode=IfAvailable", "--exec-provide-cluster-info",
            ]
            plan.steps.append(.command(words + plugin.dropFirst().map { "--exec-arg=\($0)" }))
        }
        if account == nil { plan.steps += try KubectlSetup.authorities(of: origins) }
        var contexts = configuration.contexts(for: origins.map(\.rule.pattern)).filter { $0.user != name }
            .map(\.name)
        if contexts.isEmpty, !configuration.contexts.contains(where: { $0.user == name }) { contexts = ["CONTEXT"] }
        plan.notes += contexts.map { "To use it: \(shown: "kubectl config set-context \($0) --user=\(name)")" }
        return plan
    }

    /// The error for a kubectl without the options of a plugin that is told the cluster (before 1.29, such as Debian
    /// 12's 1.20). Shows what to add, in the version of the protocol that such a kubectl knows: a kubeconfig may be of
    /// several files with comments, which are the user's.
    private static func cannotWrite(
        _ name: String, _ plugin: [String], _ configuration: KubectlConfiguration
    ) -> RingbackError {
        let quoted = { (text: String) in "'" + text.replacing("'", with: "''") + "'" }
        // Without a user the kubeconfig has no list to add to: kubectl writes `users: null`.
        let (head, advice) =
            configuration.isEmpty
            ? (
                ["apiVersion: v1", "kind: Config", "users:"],
                "There is no kubeconfig yet: make ~/.kube/config of the lines above."
            )
            : configuration.users.isEmpty
                ? (["users:"], "Put the lines above into the kubeconfig, in place of its line “users: null”.")
                : ([], "Add the lines above to the kubeconfig, below “users:”.")
        let lines =
            head + [
                "- name: \(name)", "  user:", "    exec:", "      apiVersion: client.authentication.k8s.io/v1beta1",
                "      command: \(quoted(plugin[0]))",
                "      args: [\(plugin.dropFirst().map(quoted).joined(separator: ", "))]",
                "      provideClusterInfo: true",
            ]
        // A line that begins with a blank is not wrapped.
        for line in lines { Output.note("  " + Sanitizer.line(line, limit: 16_384)) }
        return RingbackError(
            "setup_failed",
            "This kubectl has no option --exec-provide-cluster-info, so it cannot write the plugin. Nothing was changed.",
            advice: advice)
    }

    /// The steps that let the origins take the certificate authorities which the kubeconfig has for their servers.
    private static func authorities(of origins: [OriginEntry]) throws(RingbackError) -> [SetupStep] {
        // With --raw the whole kubeconfig would have secrets; the clusters have none.
        let list = try output(of: ["kubectl", "config", "view", "--raw", "-o", "jsonpath={.clusters}"])
        var wanted: [Int: Set<String>] = [:]
        for cluster in KubectlConfiguration.clusters(list) {
            guard let url = try? WebURL(parsing: cluster.server),
                let index = OriginRule.mostSpecific(of: origins.map(\.rule), for: OriginPlace(url), username: nil)
            else { continue }
            var authority = cluster.authority
            if let path = cluster.authorityFile { authority = try Files.contents(of: path) }
            if let authority { wanted[index, default: []].insert(KubectlCredential.authority(authority)) }
        }
        return wanted.sorted { $0.key < $1.key }.compactMap { index, digests in
            let former = origins[index].authorities
            return digests.isSubset(of: former)
                ? nil : .allowAuthorities(origins[index], former.union(digests).sorted())
        }
    }

    func removal(for origins: [OriginEntry]?, account: String?) throws(RingbackError) -> SetupPlan {
        let configuration = try configuration()
        var plan = SetupPlan()
        for user in configuration.written(account: account) {
            plan.steps.append(.command(["kubectl", "config", "delete-user", user.name]))
            for context in configuration.contexts where context.user == user.name {
                plan.notes.append("The context \(context.name) uses \(user.name), and has no user afterwards.")
            }
        }
        return plan
    }

    func standing(for origins: [OriginEntry]) throws(RingbackError) -> ToolStanding {
        let configuration = try configuration()
        var (servers, notes, missing, hasOther) = ([String](), [String](), 0, false)
        for context in configuration.contexts where configuration.isAsked(context) {
            servers.append(context.server ?? context.name)
        }
        for context in configuration.contexts(for: origins.map(\.rule.pattern)) where !configuration.isAsked(context) {
            missing += 1
            guard !context.user.isEmpty else { continue }
            notes.append("The context \(context.name) has another user: \(context.user)")
            hasOther = true
        }
        let written = configuration.written(account: nil)
        for user in written where !configuration.contexts.contains(where: { $0.user == user.name }) {
            let command = ShownCommand("kubectl config set-context CONTEXT --user=\(user.name)")
            notes.append("No context uses \(user.name). Run: \(shown: command)")
        }
        // With an account's name no origin is asked.
        let asksOrigins = configuration.contexts.filter(configuration.isAsked).contains { context in
            configuration.users.contains { user in
                user.name == context.user && !user.plugin.contains { $0.hasPrefix("--account") }
            }
        }
        for case .allowAuthorities(let origin, _) in try asksOrigins ? KubectlSetup.authorities(of: origins) : [] {
            missing += 1
            notes.append(
                "The kubeconfig has a certificate authority for \(origin.rule.pattern.text) that the origin does not allow "
                    + "(ca_sha256), so kubectl gets no token there.")
        }
        // Another user of a context is no mistake as long as nothing asks Ringback.
        let isUsed = !servers.isEmpty || !written.isEmpty
        return ToolStanding(
            servers: servers, missing: missing, hasOther: hasOther && isUsed, notes: isUsed ? notes : [])
    }

    private func configuration() throws(RingbackError) -> KubectlConfiguration {
        // Without --raw it has no secrets.
        let view = try KubectlSetup.output(of: ["kubectl", "config", "view", "-o", "json"])
        guard let configuration = KubectlConfiguration(view: view) else {
            throw RingbackError(
                "setup_failed", "kubectl config view does not print the kubeconfig. Nothing was changed.")
        }
        return configuration
    }
}

/// docker: an entry of `credHelpers` for each registry, which no command of docker's writes, and a link
/// `docker-credential-ringback`, which docker starts. podman and skopeo read the same file if they have none of their
/// own.
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

    private func read() throws(RingbackError) -> (former: [UInt8]?, configuration: DockerConfiguration) {
        let former = try Files.contents(of: path)
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

    func change(for origins: [OriginEntry], account: String?) throws(RingbackError) -> SetupPlan {
        let registries = DockerSetup.registries(of: origins.withAccessTokens)
        guard !registries.isEmpty else {
            throw DockerSetup.noOrigin(
                of: account, "docker can ask for: one for an access token, with https, without a path and a user name")
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
            plan.steps.append(.replace(path: path, former: former, changed.bytes, text: text("add", added)))
        }
        plan.record = record
        plan.notes += link.notes
        return plan
    }

    func removal(for origins: [OriginEntry]?, account: String?) throws(RingbackError) -> SetupPlan {
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

    func standing(for origins: [OriginEntry]) throws(RingbackError) -> ToolStanding {
        let registries = DockerSetup.registries(of: origins.withAccessTokens)
        let known = DockerSetup.registries(of: origins)
        let configuration = try read().configuration
        let servers = configuration.registries
        var notes = servers.filter { !known.contains($0) }.map {
            "\(path) names Ringback for \($0), but no [[origin]] table names that server."
        }
        let others = registries.compactMap { registry in
            configuration.otherHelper(of: registry).map { "\(path) has another helper for \(registry): \($0)" }
        }
        if !servers.isEmpty {
            notes += others
            if !link.isFound { notes.append("docker-credential-ringback in PATH is missing or is another program.") }
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
        home = try Files.home()
        self.name = name
        self.target = target
    }

    var path: String { "\(home)/.local/bin/\(name)" }
    var isFound: Bool { isFound(in: .own) }

    func isFound(in path: SearchPath) -> Bool { path.place(of: name).map(Programs.isSelf) == true }

    func change() throws(RingbackError) -> [SetupStep] {
        guard !isFound, !Programs.isSelf(path) else { return [] }
        guard !Files.exists(path) else {
            throw RingbackError("place_taken", "\(path) is no link to this program. Nothing was changed. Move it away.")
        }
        return [.link(path: path, target: target)]
    }

    func removal() -> [SetupStep] {
        Programs.isSelf(path) && !Files.isRegular(path) ? [.removeLink(path: path)] : []
    }

    var notes: [String] {
        let folder = Files.folder(of: path)
        return isFound || SearchPath.own.folders.contains(folder)
            ? [] : ["\(folder) is not in PATH, where the tools look for \(name)."]
    }

    /// What to say if the tool finds the link when a shell starts it, and not when the user manager does, as for a
    /// program of the desktop.
    func note(ofManager path: SearchPath) -> String? {
        guard let place = SearchPath.own.place(of: name), isFound, !isFound(in: path) else { return nil }
        let folder = Files.folder(of: place)
        return "Programs that the desktop starts do not find \(name): \(folder) is not in the PATH of the user "
            + "manager. Write PATH=\(folder):$PATH into ~/.config/environment.d/path.conf, and log in again."
    }
}
