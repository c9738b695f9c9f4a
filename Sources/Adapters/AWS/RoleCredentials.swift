internal import Encodings
public import Secrets
internal import StrictJSON

/// Credentials of AWS for a limited time.
public struct RoleCredentials: Sendable, Equatable {
    public let accessKeyID: String
    public let secretAccessKey: Secret
    public let sessionToken: Secret
    /// Unix seconds.
    public var expiresAt: Int

    private static let longest = (key: 256, token: 32_768)

    /// Nil for values that are missing, empty or too long, or have other bytes than 0x21 to 0x7E.
    ///
    /// - Parameter expiresAt: in Unix seconds.
    public init?(accessKeyID: String?, secretAccessKey: String?, sessionToken: String?, expiresAt: Int?) {
        guard let expiresAt, let accessKeyID, let secretAccessKey, let sessionToken else { return nil }
        for (text, bound) in [
            (accessKeyID, RoleCredentials.longest.key), (secretAccessKey, RoleCredentials.longest.key),
            (sessionToken, RoleCredentials.longest.token),
        ] {
            guard (1...bound).contains(text.utf8.count), text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                return nil
            }
        }
        self.accessKeyID = accessKeyID
        self.secretAccessKey = Secret(secretAccessKey)
        self.sessionToken = Secret(sessionToken)
        self.expiresAt = expiresAt
    }

    /// What a program prints that the setting `credential_process` of AWS's configuration names, version 1.
    public var processAnswer: [UInt8] {
        let answer: JSON = [
            "Version": 1, "AccessKeyId": .string(accessKeyID),
            "SecretAccessKey": .string(secretAccessKey.revealed()),
            "SessionToken": .string(sessionToken.revealed()), "Expiration": .string(Timestamp.text(of: expiresAt)),
        ]
        return answer.serialized() + [0x0A]
    }
}
