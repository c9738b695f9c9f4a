internal import Encodings
internal import HTTPMessages
public import Secrets

/// The exchange of a token of an account for AWS credentials of a role: `AssumeRoleWithWebIdentity` of AWS's Security
/// Token Service (version 2011-06-15), which MinIO and others have too. The request is a form, the response is XML.
public struct RoleExchange: Sendable, Equatable {
    public let roleARN: String
    /// The name that AWS's logs show.
    public let sessionName: String
    /// How long the credentials are to be valid, in seconds.
    public let seconds: Int

    public init(roleARN: String, sessionName: String, seconds: Int) {
        self.roleARN = roleARN
        self.sessionName = sessionName
        self.seconds = seconds
    }

    /// The body of the request, with the token in it.
    public func form(token: Secret) -> Secret {
        Secret(
            FormEncoding.encode([
                ("Action", "AssumeRoleWithWebIdentity"), ("Version", "2011-06-15"), ("RoleArn", roleARN),
                ("RoleSessionName", sessionName), ("DurationSeconds", String(seconds)),
                ("WebIdentityToken", token.revealed()),
            ]))
    }

    /// Why there are no credentials.
    public enum Failure: Error, Sendable, Equatable {
        /// The service's error response. Code and message are bounded and printable ASCII.
        case refused(code: String, message: String?)
        /// A status from 500 on without an error response of the service.
        case unavailable(status: Int)
        /// Not a response of this service. The reason follows a colon and contains nothing of the response.
        case invalid(String)

        /// The service says that the token has expired.
        public var isOfExpiredToken: Bool {
            guard case .refused(let code, _) = self else { return false }
            return code == "ExpiredTokenException" || code == "ExpiredToken"
        }
    }

    /// The most bytes of a response that are read.
    public static let maxResponse = XMLElement.maxBytes
    private static let maxMessage = 300

    /// Reads the response.
    ///
    /// - Throws: for an error response, and for one that is none of this service.
    public static func credentials(in body: [UInt8], status: Int) throws(Failure) -> RoleCredentials {
        let found: Result<RoleCredentials, Failure>
        do throws(XMLElement.Failure) {
            let root = try XMLElement(parsing: body)
            found =
                root.name == "ErrorResponse"
                ? .failure(try refusal(in: root)) : .success(try credentials(in: root, status: status))
        } catch {
            throw status >= 500 ? .unavailable(status: status) : .invalid(error.reason)
        }
        return try found.get()
    }

    private static func credentials(
        in root: XMLElement, status: Int
    ) throws(XMLElement.Failure) -> RoleCredentials {
        guard status == 200, root.name == "AssumeRoleWithWebIdentityResponse" else {
            throw XMLElement.Failure("HTTP status \(status), and no response of this service")
        }
        guard let result = try root.child("AssumeRoleWithWebIdentityResult"),
            let credentials = try result.child("Credentials")
        else { throw XMLElement.Failure("it has no credentials") }
        func text(_ name: String) throws(XMLElement.Failure) -> String { try credentials.child(name)?.text ?? "" }
        let made = RoleCredentials(
            accessKeyID: try text("AccessKeyId"), secretAccessKey: try text("SecretAccessKey"),
            sessionToken: try text("SessionToken"), expiresAt: Timestamp.seconds(of: try text("Expiration")))
        guard let made else {
            throw XMLElement.Failure("its credentials are incomplete, or have characters that are not allowed")
        }
        return made
    }

    private static func refusal(in root: XMLElement) throws(XMLElement.Failure) -> Failure {
        guard let error = try root.child("Error"), let code = try error.child("Code")?.text,
            (1...64).contains(code.utf8.count), code.utf8.allSatisfy(isOfCode)
        else { throw XMLElement.Failure("its error has no code") }
        let words = (try error.child("Message")?.text ?? "").unicodeScalars.prefix(maxMessage).map {
            (0x20..<0x7F).contains($0.value) ? Character($0) : " "
        }
        let message = String(words).split(separator: " ").joined(separator: " ")
        return .refused(code: code, message: message.isEmpty ? nil : message)
    }

    private static func isOfCode(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "."): true
        default: false
        }
    }
}
