public import RingbackBase

/// The users of a kubeconfig whose credential plugin is Ringback, and which contexts use them.
public struct KubectlConfiguration: Sendable, Equatable {
    public struct User: Sendable, Equatable {
        public let name: String
        /// The credential plugin and its arguments; empty without one.
        public let plugin: [String]

        /// True for a name of ``KubectlConfiguration/userName(account:)`` whose plugin is exactly what
        /// ``KubectlConfiguration/plugin(_:account:)`` makes for it, of an absolute path of Ringback.
        public var isWritten: Bool {
            guard let program = plugin.first, program.hasPrefix("/"), program.hasSuffix("/ringback") else {
                return false
            }
            let start = KubectlConfiguration.userName(account: "")
            let account = name.hasPrefix(start) ? String(name.dropFirst(start.count)) : nil
            return name == KubectlConfiguration.userName(account: account)
                && plugin == KubectlConfiguration.plugin(program, account: account)
        }

        /// True for a plugin that is Ringback, whoever wrote it.
        var isRingback: Bool {
            let name = "ringback"
            guard let program = plugin.first?.split(separator: "/").last else { return false }
            return program == "kubectl-\(name)"
                || program == name && plugin.dropFirst().first == KubectlConfiguration.verb
        }
    }

    public struct Context: Sendable, Equatable {
        public let name: String
        /// The URL of the cluster's server; nil if the kubeconfig has none.
        public let server: String?
        public let user: String
    }

    public struct Cluster: Sendable, Equatable {
        public let server: String
        /// The PEM text of the certificate authorities that the cluster has in place of the system's, if it is in the
        /// kubeconfig itself.
        public let authority: [UInt8]?
        /// The file that has it otherwise.
        public let authorityFile: String?
    }

    private static let verb = "kubectl-credential"

    public let users: [User]
    public let contexts: [Context]
    private let hasCluster: Bool

    /// - Parameter view: the output of `kubectl config view -o json`. Nil if it is no such output.
    public init?(view: some Collection<UInt8>) {
        guard let document = (try? JSON(parsing: view))?.object else { return nil }
        func entries(_ list: String, _ member: String) -> [(String, JSON)] {
            (document[list]?.array ?? []).compactMap { entry in
                entry["name"]?.string.map { ($0, entry[member] ?? .null) }
            }
        }
        users = entries("users", "user").map { name, user in
            let plugin = user["exec"]
            let arguments = (plugin?["args"]?.array ?? []).compactMap(\.string)
            return User(name: name, plugin: plugin?["command"]?.string.map { [$0] + arguments } ?? [])
        }
        let clusters = entries("clusters", "cluster")
        hasCluster = !clusters.isEmpty
        contexts = entries("contexts", "context").map { name, context in
            let cluster = clusters.first { $0.0 == context["cluster"]?.string }?.1
            return Context(name: name, server: cluster?["server"]?.string, user: context["user"]?.string ?? "")
        }
    }

    /// - Parameter list: the output of `kubectl config view --raw -o jsonpath={.clusters}`; empty for another text.
    public static func clusters(_ list: some Collection<UInt8>) -> [Cluster] {
        ((try? JSON(parsing: list))?.array ?? []).compactMap { entry in
            guard let cluster = entry["cluster"], let server = cluster["server"]?.string else { return nil }
            let data = cluster["certificate-authority-data"]?.string.flatMap { $0.isEmpty ? nil : Base64.decode($0) }
            let file = cluster["certificate-authority"]?.string.flatMap { $0.isEmpty ? nil : $0 }
            return Cluster(server: server, authority: data, authorityFile: data == nil ? file : nil)
        }
    }

    public static func userName(account: String?) -> String { account.map { "ringback-\($0)" } ?? "ringback" }

    public static func plugin(_ program: String, account: String?) -> [String] {
        [program, verb] + (account.map { ["--account=\($0)"] } ?? [])
    }

    /// The contexts whose cluster's server belongs to one of these origins.
    public func contexts(for origins: [OriginPattern]) -> [Context] {
        contexts.filter { context in
            guard let server = context.server, let url = try? WebURL(parsing: server) else { return false }
            let place = OriginPlace(url)
            return origins.contains { $0.matches(place) }
        }
    }

    /// There is no kubeconfig, or nothing is in it.
    public var isEmpty: Bool { users.isEmpty && contexts.isEmpty && !hasCluster }

    public func isAsked(_ context: Context) -> Bool { users.contains { $0.name == context.user && $0.isRingback } }

    /// The users that setup made, of one account or all.
    public func written(account: String?) -> [User] {
        users.filter { $0.isWritten && (account == nil || $0.name == KubectlConfiguration.userName(account: account)) }
    }
}
