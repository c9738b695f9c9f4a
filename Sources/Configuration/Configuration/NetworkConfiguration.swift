public import RingbackBase

/// `[network]`: how providers are reached. The proxy variables of the environment are ignored.
public struct NetworkConfiguration: Sendable, Equatable {
    /// For accounts without their own setting; nil for no proxy.
    public var proxy: HTTPProxy?

    /// The default without `[network]`.
    public static let standard = NetworkConfiguration(proxy: nil)

    static func read(_ table: TOMLTableReader, place: ConfigurationPlace, check: inout KeyCheck) -> NetworkConfiguration
    {
        var reader = ProxyReader(table: table, path: ["network"], place: place, check: check)
        defer { check = reader.check }
        return NetworkConfiguration(proxy: reader.read())
    }
}

extension AccountReader {
    /// The account's proxy setting.
    mutating func readRoute() -> HTTPRoute {
        var reader = ProxyReader(
            table: table, path: ["accounts", account.name], place: account.place, check: account.check)
        defer { account.check = reader.check }
        if table.string("proxy") == ProxyReader.none { return reader.readNone() }
        return reader.read().map { .proxy($0) } ?? .standard
    }
}

/// Reads `proxy`, `no_proxy` and `proxy_credentials_file` of a table.
private struct ProxyReader {
    let table: TOMLTableReader
    /// The path of the table.
    let path: [String]
    let place: ConfigurationPlace
    var check: KeyCheck

    /// The value for "no proxy" of an account.
    static let none = "none"
    /// The maximum size of a credentials file in bytes.
    private static let maxSize = 4_096

    /// The proxy; nil if there is none or it has an error.
    mutating func read() -> HTTPProxy? {
        guard let text = table.string("proxy") else {
            refuseOthers("goes with proxy, which is missing")
            return nil
        }
        guard let url = try? WebURL(parsing: text), url.scheme == "http", url.port != nil,
            url.path == "" || url.path == "/",
            url.query == nil, url.fragment == nil
        else {
            refuse(
                "proxy",
                text.contains("@")
                    ? "must be http://HOST:PORT; a user name and a password go into proxy_credentials_file"
                    : "must be http://HOST:PORT\(path.count > 1 ? ", or none" : "")")
            return nil
        }
        return HTTPProxy(url: url, credentials: readCredentials(), exceptions: readExceptions())
    }

    mutating func readNone() -> HTTPRoute {
        refuseOthers("goes with a proxy, and proxy is none")
        return .direct
    }

    private mutating func refuseOthers(_ message: String) {
        for key in ["no_proxy", "proxy_credentials_file"] where table.has(key) { refuse(key, message) }
    }

    private mutating func readExceptions() -> [String] {
        (table.strings("no_proxy") ?? []).map { text, node in
            let isGood = text == "*" || !text.isEmpty && text.utf8.allSatisfy(ProxyReader.isHostByte)
            if !isGood {
                check.refuse(
                    node, path + ["no_proxy"],
                    "must be a host name (subdomains are included), an IP address without brackets, or *")
            }
            return text.lowercased()
        }
    }

    private mutating func readCredentials() -> HTTPProxy.Credentials? {
        let key = "proxy_credentials_file"
        guard let written = table.string(key) else { return nil }
        guard let file = place.path(written) else {
            refuse(key, "must be an absolute path, or begin with ~/")
            return nil
        }
        do throws(FileTrust.Failure) {
            let content = try FileTrust(user: place.user).read(file, isSecret: true, maxSize: ProxyReader.maxSize)
            let line = content.bytes.last == 0x0A ? content.bytes.dropLast() : content.bytes[...]
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > 0,
                line.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }),
                let user = String(validating: line[..<colon], as: UTF8.self)
            else {
                refuse(key, "the file \(FileTrust.quoted(file)) must hold USER:PASSWORD, on one line")
                return nil
            }
            return HTTPProxy.Credentials(user: user, password: Secret(bytes: line[line.index(after: colon)...]))
        } catch {
            refuse(key, error.mistake(of: file))
            return nil
        }
    }

    private mutating func refuse(_ key: String, _ message: String) { refuse(key, Mistake(message)) }

    private mutating func refuse(_ key: String, _ mistake: Mistake) {
        guard let node = table.node(key) else { return }
        check.refuse(node, path + [key], mistake)
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: ".-_:".utf8.contains(byte)
        }
    }
}
