internal import RingbackBase

extension AccountReader {
    func readRoute() -> HTTPRoute {
        let reader = ProxyReader(table: table)
        guard table.string("proxy") == "none" else { return reader.read().map { .proxy($0) } ?? .standard }
        reader.refuseOthers("goes with a proxy, and proxy is none")
        return .direct
    }
}

/// Reads `proxy`, `no_proxy` and `proxy_credentials_file` of a table.
struct ProxyReader {
    let table: SettingTable

    /// The maximum size of a credentials file in bytes.
    private static let maxSize = 4_096

    /// Nil if there is no proxy, or an error in it.
    func read() -> HTTPProxy? {
        guard let text = table.string("proxy") else {
            refuseOthers("goes with proxy, which is missing")
            return nil
        }
        guard let url = try? WebURL(parsing: text), url.scheme == "http", url.port != nil,
            url.path == "" || url.path == "/", url.query == nil, url.fragment == nil
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

    fileprivate func refuseOthers(_ message: String) {
        table.refuse(anyOf: ["no_proxy", "proxy_credentials_file"], message)
    }

    private func readExceptions() -> [String] {
        (table.strings("no_proxy") ?? []).map { text, node in
            let isHost = !text.isEmpty && text.utf8.allSatisfy { $0.isLetterOrDigit || ".-_:".utf8.contains($0) }
            if text != "*", !isHost {
                table.refuse(
                    "no_proxy", node,
                    "must be a host name (subdomains are included), an IP address without brackets, or *"
                )
            }
            return text.lowercased()
        }
    }

    private func readCredentials() -> HTTPProxy.Credentials? {
        let key = "proxy_credentials_file"
        guard let file = table.filePath(key) else { return nil }
        return table.reporting(key) { () throws(Mistake) in
            let bytes = try ClientSecretFile.read(file, user: table.place.user, maxSize: ProxyReader.maxSize)
            let line = bytes.last == 0x0A ? bytes.dropLast() : bytes[...]
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > 0,
                line.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }),
                let user = String(validating: line[..<colon], as: UTF8.self)
            else {
                throw Mistake("the file \(FileTrust.quoted(file)) must hold USER:PASSWORD, on one line")
            }
            return HTTPProxy.Credentials(user: user, password: Secret(bytes: line[line.index(after: colon)...]))
        }
    }
}
