internal import BrokerCore
public import HTTPMessages

extension SocketAPI {
    /// How providers are reached, for `ringback doctor`.
    public struct Network: Sendable {
        /// From the configuration, for accounts without a setting of their own.
        public var proxy: HTTPProxy?
        /// Variables that name proxies for other programs, and that are ignored. Their values may hold passwords and
        /// are not kept.
        public var ignoredVariables: [String]

        public init(proxy: HTTPProxy? = nil, ignoredVariables: [String] = []) {
            self.proxy = proxy
            self.ignoredVariables = ignoredVariables
        }
    }

    func networkFindings() -> [Finding] {
        let network = daemon.network()
        var findings: [Finding] = []
        if let proxy = network.proxy {
            findings.append(.proxied(by: proxy, isOfAll: true))
        }
        if !network.ignoredVariables.isEmpty {
            let names = network.ignoredVariables.joined(separator: ", ")
            let remedy =
                network.proxy == nil
                ? " If providers are reached through a proxy, write below [network]: proxy = "
                    + "\"http://HOST:PORT\"" : ""
            findings.append(
                Finding(
                    .network, network.proxy == nil ? .warning : .ok,
                    .stated("The daemon was started with \(names), and does not use what that says.\(remedy)"),
                    network.proxy == nil ? .configuration : nil, setting: "network.proxy"))
        }
        return findings
    }

    /// The proxy through which the URL of a finding is requested, as in a configuration: `none` if the account excludes
    /// the daemon's proxy; nil if there is none.
    func proxy(of finding: Finding) -> String? {
        guard let way = finding.way, let url = finding.url.flatMap({ try? WebURL(parsing: $0) }) else { return nil }
        let proxy: HTTPProxy?
        switch way.route {
        case .standard: proxy = daemon.network().proxy
        case .direct: return "none"
        case .proxy(let own): proxy = own
        }
        return proxy.flatMap { $0.covers(url) ? $0.url.text : nil }
    }
}
