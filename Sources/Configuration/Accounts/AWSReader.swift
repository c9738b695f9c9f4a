public import HTTPMessages

/// The AWS role whose credentials a token of an account is exchanged for (`AssumeRoleWithWebIdentity`).
public struct AWSConfiguration: Sendable, Equatable {
    /// Which token of the account is exchanged: the values of `kind`.
    public enum Kind: String, Sendable, Equatable, CaseIterable {
        case idToken = "id_token"
        case accessToken = "access_token"
    }

    public let roleARN: String
    /// The URL of AWS's token service (STS).
    public let service: WebURL
    /// The name of the role session, which AWS's logs show.
    public let sessionName: String
    /// How long the credentials are to be valid, in seconds.
    public let duration: Int
    public let kind: Kind
}

/// Reads `[accounts.NAME.aws]`. Reports what is wrong at the account.
struct AWSReader {
    private var account: AccountTable
    private let table: TOMLTableReader

    // The limits that AWS documents.
    private static let lengths = (arn: 20...2_048, name: 2...64)
    private static let durations = 900...43_200
    private static let usual = (name: "ringback", duration: 3_600)

    /// Nil for an account without the table, or with an error in it.
    static func read(_ account: inout AccountTable, of provider: AccountProvider?) -> AWSConfiguration? {
        guard let table = account.members.table("aws") else { return nil }
        var reader = AWSReader(account: account, table: table)
        defer { account = reader.account }
        return reader.read(of: provider)
    }

    private mutating func read(of provider: AccountProvider?) -> AWSConfiguration? {
        let (arn, service, name) = (readRole(), readService(), readSessionName())
        let (duration, kind) = (readDuration(), readKind(of: provider))
        guard let arn, let service else { return nil }
        return AWSConfiguration(roleARN: arn, service: service, sessionName: name, duration: duration, kind: kind)
    }

    private mutating func refuse(_ key: String, _ message: String) {
        account.refuse("aws", table.node(key) ?? account.members.node("aws") ?? account.node, key, message)
    }

    private mutating func readRole() -> String? {
        guard let arn = table.string("role_arn") else {
            if !account.isWritten("role_arn", in: "aws") { account.refuse("aws", "needs role_arn: the role to assume") }
            return nil
        }
        guard AWSReader.lengths.arn.contains(arn.utf8.count), arn.hasPrefix("arn:"), arn.contains(":role/"),
            arn.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            refuse("role_arn", "is the name of a role: arn:aws:iam::NUMBER:role/NAME")
            return nil
        }
        return arn
    }

    private mutating func readService() -> WebURL? {
        switch (table.string("region"), table.string("endpoint")) {
        case (nil, nil):
            if !account.isWritten("region", in: "aws"), !account.isWritten("endpoint", in: "aws") {
                account.refuse("aws", "needs region, such as \"eu-central-1\", or endpoint: where the token service is")
            }
            return nil
        case (_?, _?):
            refuse("endpoint", "cannot be combined with region")
            return nil
        case (let region?, nil):
            guard (4...32).contains(region.utf8.count), region.utf8.allSatisfy(AWSReader.isOfRegion) else {
                refuse("region", "is a name such as eu-central-1")
                return nil
            }
            let end = region.hasPrefix("cn-") ? "amazonaws.com.cn" : "amazonaws.com"
            return try? WebURL(parsing: "https://sts.\(region).\(end)/")
        case (nil, let text?):
            guard let url = try? WebURL(parsing: text), url.isSecure, url.host?.isEmpty == false, url.query == nil,
                url.fragment == nil
            else {
                refuse("endpoint", "is an https URL without a query, or an http URL of this machine")
                return nil
            }
            return url
        }
    }

    private static func isOfRegion(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x61...0x7A, UInt8(ascii: "-"): true
        default: false
        }
    }

    private mutating func readSessionName() -> String {
        guard let name = table.string("session_name") else { return AWSReader.usual.name }
        let isName = name.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "_+=,.@-".utf8.contains(byte)
            }
        }
        if !isName || !AWSReader.lengths.name.contains(name.utf8.count) {
            refuse("session_name", "has 2 to 64 letters, digits and _+=,.@-")
        }
        return name
    }

    private mutating func readDuration() -> Int {
        guard table.has("duration") else { return AWSReader.usual.duration }
        guard let seconds = table.span("duration"), AWSReader.durations.contains(seconds) else {
            refuse("duration", "is from 900 seconds to 12 hours, as seconds or a span such as \"1h\"")
            return AWSReader.usual.duration
        }
        return seconds
    }

    private mutating func readKind(of provider: AccountProvider?) -> AWSConfiguration.Kind {
        let kind = table.string("kind").flatMap(AWSConfiguration.Kind.init) ?? .idToken
        // Without an issuer, ID tokens cannot be validated, so the account has none.
        if kind == .idToken, let provider, provider.issuer == nil, !account.isService {
            refuse("kind", "must be \"access_token\": this provider has no ID tokens")
        }
        return kind
    }
}
