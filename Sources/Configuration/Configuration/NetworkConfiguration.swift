public import RingbackBase

/// `[network]`: how providers are reached. The proxy variables of the environment are ignored.
public struct NetworkConfiguration: Sendable, Equatable {
    /// For accounts without their own setting; nil for no proxy.
    public var proxy: HTTPProxy?

    /// The default without `[network]`.
    public static let standard = NetworkConfiguration(proxy: nil)

    static func read(_ table: SettingTable) -> NetworkConfiguration {
        NetworkConfiguration(proxy: ProxyReader(table: table).read())
    }
}

extension AccountReader {
    /// The account's proxy setting.
    func readRoute() -> HTTPRoute {
        let reader = ProxyReader(table: table)
        if table.string("proxy") == ProxyReader.none { return reader.readNone() }
        return reader.read().map { .proxy($0) } ?? .standard
    }
}

/// Reads `proxy`, `no_proxy` and `proxy_credentials_file` of a table.
private struct ProxyReader {
    let table: SettingTable

    /// The value for "no proxy" of an account.
    static let none = "none"
    /// The maximum size of a credentials file in bytes.
    private static let maxSize = 4_096

    /// The proxy; nil if there is none or it has an error.
    func read() -> HTTPProxy? {
        guard let text = table.string("proxy") else {
            refuseOthers("goes with proxy, which is missing")
            return nil
        }
        guard let url = try? WebURL(parsing: text), url.scheme == "http", url.port != nil,
            url.path == "" || url.path == "/",
            url.query == nil, url.fragment == nil
        else {
            table.refuse(
                "proxy",
                text.contains("@")
                    ? "must be http://HOST:PORT; a user name and a password go into proxy_credentials_file"
                    : "must be http://HOST:PORT\(table.path.count > 1 ? ", or none" : "")")
            return nil
        }
        return HTTPProxy(url: url, credentials: readCredentials(), exceptions: readExceptions())
    }

    func readNone() -> HTTPRoute {
        refuseOthers("goes with a proxy, and proxy is none")
        return .direct
    }

    private func refuseOthers(_ message: String) {
        for key in ["no_proxy", "proxy_credentials_file"] where table.has(key) { table.refuse(key, message) }
    }

    private func readExceptions() -> [String] {
        (table.strings("no_proxy") ?? []).map { text, node in
            let isHost = !text.isEmpty && text.utf8.allSatisfy { $0.isLetterOrDigit || ".-_:".utf8.contains($0) }
            if text != "*", !isHost {
                table.refuse(
                    "no_proxy", node,
                    "must be a host name (subdomains are included), an IP address without brackets, or *")
            }
            return text.lowercased()
        }
    }

    private func readCredentials() -> HTTPProxy.Credentials? {
        let key = "proxy_credentials_file"
        guard let file = table.filePath(key) else { return nil }
        do throws(Mistake) {
            let bytes = try ClientSecretFile.read(file, user: table.place.user, maxSize: ProxyReader.maxSize)
            let line = bytes.last == 0x0A ? bytes.dropLast() : bytes[...]
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > 0,
                line.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }),
                let user = String(validating: line[..<colon], as: UTF8.self)
            else {
                throw Mistake("the file \(FileTrust.quoted(file)) must hold USER:PASSWORD, on one line")
            }
            return HTTPProxy.Credentials(user: user, password: Secret(bytes: line[line.index(after: colon)...]))
        } catch {
            table.refuse(key, error)
            return nil
        }
    }
}
