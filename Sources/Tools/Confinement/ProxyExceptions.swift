/// The variables by which programs know the hosts that they reach without a proxy.
public enum ProxyExceptions {
    private static let names = ["no_proxy", "NO_PROXY"]

    /// Their values with a further host. A variable that is not there has the hosts of the other one, since some programs look
    /// at one of the two.
    ///
    /// - Parameter value: of a variable; nil if it is not there.
    public static func adding(
        _ host: String, to value: (String) -> String?
    ) -> [(name: String, value: String)] {
        let other = names.lazy.compactMap(value).first { !$0.isEmpty } ?? ""
        return names.map { name in
            let own = value(name).flatMap { $0.isEmpty ? nil : $0 } ?? other
            // Every host, which programs read only where it stands alone.
            return (name, own == "*" ? own : own.isEmpty ? host : "\(own),\(host)")
        }
    }
}
