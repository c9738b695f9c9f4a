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
            let exceptions = proxy.exceptions.isEmpty ? "" : ", except to \(proxy.exceptions.joined(separator: ", "))"
            findings.append(
                Finding(
                    "network", .ok,
                    "Requests to providers go through the proxy \(proxy.url.text)\(exceptions). The proxy resolves their "
                        + "names. Therefore the check that a URL from a provider does not lead to this machine works "
                        + "only for URLs with an IP address."))
        }
        if !network.ignoredVariables.isEmpty {
            let names = network.ignoredVariables.joined(separator: ", ")
            let remedy =
                network.proxy == nil
                ? " If providers are reached through a proxy, write below [network]: proxy = "
                    + "\"http://HOST:PORT\"" : ""
            findings.append(
                Finding(
                    "network", network.proxy == nil ? .warning : .ok,
                    "The daemon was started with \(names), and does not use what that says.\(remedy)",
                    network.proxy == nil ? .configuration : nil, setting: "network.proxy"))
        }
        return findings
    }
}
