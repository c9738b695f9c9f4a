import Adapters
import RingbackBase
import RingbackClient
import Terminal

/// kubectl: a user of the kubeconfig whose credential plugin is Ringback, by `kubectl config`. The contexts that are to use
/// it are named; the user chooses, since a context has only one user.
struct KubectlSetup: ToolSetup {
    let programs = ["kubectl"]
    let needsProgramToUndo = true
    private let program: String

    init() throws(RingbackError) { program = try KubectlSetup.program() }

    func change(for targets: SetupTargets, account: String?) throws(RingbackError) -> SetupPlan {
        let origins = targets.origins
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
                throw KubectlSetup.cannotWrite(name, plugin)
            }
            // Of a user that is there, kubectl replaces the command and all of its arguments.
            plan.steps.append(
                .command(
                    [
                        "kubectl", "config", "set-credentials", name,
                        "--exec-api-version=client.authentication.k8s.io/v1", "--exec-command=\(program)",
                        "--exec-interactive-mode=IfAvailable", "--exec-provide-cluster-info",
                    ] + plugin.dropFirst().map { "--exec-arg=\($0)" }))
        }
        if account == nil { plan.steps += try KubectlSetup.authorities(of: origins) }
        var contexts = configuration.contexts(for: origins.map(\.rule.pattern)).filter { $0.user != name }
            .map(\.name)
        if contexts.isEmpty, !configuration.contexts.contains(where: { $0.user == name }) { contexts = ["CONTEXT"] }
        plan.notes += contexts.map { "To use it: \(shown: "kubectl config set-context \($0) --user=\(name)")" }
        return plan
    }

    /// The error for a kubectl without the options of a plugin that is told the cluster (before 1.29, such as Debian 12's
    /// 1.20). The line is in the version of the protocol that such a kubectl knows.
    private static func cannotWrite(_ name: String, _ plugin: [String]) -> RingbackError {
        let quoted = { (text: String) in "'" + text.replacing("'", with: "''") + "'" }
        var error = RingbackError(
            "setup_failed",
            "This kubectl has no option --exec-provide-cluster-info, so it cannot write the plugin. Nothing was changed."
        )
        let arguments = plugin.dropFirst().map(quoted).joined(separator: ", ")
        error.advice =
            "Add this line to the kubeconfig by hand, below “users:”: - {name: \(name), user: {exec: {apiVersion: "
            + "client.authentication.k8s.io/v1beta1, command: \(quoted(plugin[0])), args: [\(arguments)], "
            + "provideClusterInfo: true}}}"
        return error
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
            if let path = cluster.authorityFile { authority = try HomeFile.contents(of: path) }
            if let authority { wanted[index, default: []].insert(KubectlCredential.authority(authority)) }
        }
        return wanted.sorted { $0.key < $1.key }.compactMap { index, digests in
            let former = origins[index].authorities
            return digests.isSubset(of: former)
                ? nil : .allowAuthorities(origins[index], former.union(digests).sorted())
        }
    }

    func removal(for targets: SetupTargets?, account: String?) throws(RingbackError) -> SetupPlan {
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

    func standing(for targets: SetupTargets) throws(RingbackError) -> ToolStanding {
        let origins = targets.origins
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
            notes.append(
                "No context uses \(user.name). Run: "
                    + "\(shown: "kubectl config set-context CONTEXT --user=\(user.name)")")
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
