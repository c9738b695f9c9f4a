/// An account of another program, as its configuration describes it.
public struct ForeignAccount: Sendable, Equatable {
    /// The other program's name for it.
    public let name: String
    public var issuer: String?
    /// The preset of Ringback for its provider.
    public var preset: String?
    public var authorizationEndpoint: String?
    public var tokenEndpoint: String?
    /// Nil where the other program has a client of its own maker.
    public var clientID: String?
    public var clientSecret: String?
    public var scopes: [String] = []
    public var redirectURI: String?
    /// Of a session that Ringback can take over: the client is the user's own.
    public var refreshToken: String?
    /// The web server whose token git is to get.
    public var server: String?
    /// What is not taken over, and why: sentences without anything from the file.
    public var notes: [String] = []

    init(name: String) { self.name = name }

    /// A name that Ringback allows for an account, made of the other program's.
    public var accountName: String {
        let letters = name.lowercased().utf8.prefix(64).map { byte in
            switch byte {
            case 0x30...0x39, 0x61...0x7A, UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"): byte
            default: UInt8(ascii: "-")
            }
        }
        let name = letters.drop { [UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_")].contains($0) }
        return name.isEmpty ? "imported" : String(decoding: name, as: UTF8.self)
    }

    /// The most bytes of a file that are read.
    public static let maxInput = 1 << 20

    /// A loopback redirect URI without a port is used with any, in all of these programs.
    static func withPort(_ uri: String) -> String {
        for host in ["http://localhost", "http://127.0.0.1"] where uri.hasPrefix(host) {
            let rest = uri.dropFirst(host.count)
            if rest.isEmpty || rest.hasPrefix("/") { return "\(host):{port}\(rest.isEmpty ? "/" : rest)" }
        }
        return uri
    }

    /// - Throws: for text that no setting of an account can be. It would be shown at a terminal and written to a file.
    static func checked(_ text: String) throws(AdapterFailure) -> String {
        guard text.utf8.count <= 16_384, text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw AdapterFailure("A value has a control character, or is too long.")
        }
        return text
    }

    /// The same; nil for an empty text.
    static func value(_ text: String?) throws(AdapterFailure) -> String? {
        guard let text, !text.isEmpty else { return nil }
        return try checked(text)
    }

    static func words(_ text: String?) throws(AdapterFailure) -> [String] {
        try checked(text ?? "").split(separator: " ").map(String.init)
    }
}
