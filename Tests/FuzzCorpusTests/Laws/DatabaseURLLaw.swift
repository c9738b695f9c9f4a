import PostgresClient

/// URLs of databases.
enum DatabaseURLLaw {
    static func check(_ bytes: [UInt8]) throws {
        guard let url = try? PostgresURL(parsing: String(decoding: bytes, as: UTF8.self)) else { return }
        try hold("there is a user, a database and a host", !url.user.isEmpty && !url.database.isEmpty)
        try hold("there are few hosts", (1...8).contains(url.hosts.count))
        try hold("what leaves the machine is verified", url.sslMode == "verify-full" || url.hosts.allSatisfy(\.isLocal))
        var texts = [url.user, url.database, url.rootCertificates, url.passwordFile].compactMap { $0 }
        for host in url.hosts {
            switch host.place {
            case .socket(let text):
                try hold("a socket has an absolute path", text.hasPrefix("/") && text.utf8.count < 100)
                texts.append(text)
            case .address(let text), .name(let text):
                try hold("a host is printable", text.isPrintableASCII && !text.isEmpty && !text.hasPrefix("/"))
                texts.append(text)
            }
            try hold("hosts can be told apart", !(texts.last ?? "").contains(","))
        }
        try hold("libpq sees the whole text", texts.allSatisfy { !$0.utf8.contains { $0 < 0x20 || $0 == 0x7F } })
        try hold(
            "paths are absolute", [url.rootCertificates, url.passwordFile].allSatisfy { $0?.hasPrefix("/") ?? true })
    }
}
