extension PostgresURL {
    /// The URL of the same database for another role, without the file of passwords, which is this role's.
    public func text(for user: String) -> String {
        let places = hosts.map { host in
            let name =
                switch host.place {
                case .socket(let path): Self.encoded(path)
                case .address(let text): text.contains(":") ? "[\(text)]" : text
                case .name(let name): name
                }
            return host.port == Self.defaultPort ? name : "\(name):\(host.port)"
        }
        var parameters: [String] = []
        if hosts.allSatisfy(\.isLocal), sslMode != "prefer" { parameters.append("sslmode=\(sslMode)") }
        if let rootCertificates { parameters.append("sslrootcert=\(Self.encoded(rootCertificates))") }
        if let channelBinding { parameters.append("channel_binding=\(channelBinding)") }
        let query = parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&")
        return "postgresql://\(Self.encoded(user))@\(places.joined(separator: ","))/\(Self.encoded(database))\(query)"
    }

    /// Everything but letters, digits and `-._~` as `%XX`.
    private static func encoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        let bytes = text.utf8.flatMap { byte -> [UInt8] in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                [byte]
            default: [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
