internal import StrictJSON

/// The answer of an executable of Google's external accounts (workload identity federation), version 1: a subject token
/// as JSON, or why there is none.
public struct GoogleCredential: Sendable, Equatable {
    /// The variable that says which type of token the account's configuration expects.
    public static let typeVariable = "GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE"
    /// The two types that an ID token has there.
    private static let types = [
        "urn:ietf:params:oauth:token-type:id_token", "urn:ietf:params:oauth:token-type:jwt",
    ]

    private let type: String

    /// - Parameter type: the value of ``typeVariable``; nil if it is not set.
    /// - Throws: for a type that is no ID token.
    public init(type: String?) throws(AdapterFailure) {
        let type = type ?? GoogleCredential.types[0]
        guard GoogleCredential.types.contains(type) else {
            throw AdapterFailure("Only ID tokens can be given: set the configuration's subject_token_type to one.")
        }
        self.type = type
    }

    /// The answer with a token.
    ///
    /// - Throws: for a token that is no JSON Web Token.
    public func answer(_ credential: AdapterCredential) throws(AdapterFailure) -> [UInt8] {
        try credential.checkToken()
        guard credential.secret.split(separator: ".", omittingEmptySubsequences: false).count == 3 else {
            throw AdapterFailure("The token is no JSON Web Token. The origin needs kind = \"id_token\".")
        }
        var answer = JSONObject([
            .init("version", 1), .init("success", true), .init("token_type", .string(type)),
            .init("id_token", .string(credential.secret)),
        ])
        answer["expiration_time"] = credential.expiresAt.map { .integer($0) }
        return JSON.object(answer).serialized() + [0x0A]
    }

    /// The answer without a token. Google's libraries show code and message.
    public static func failure(code: String, message: String) -> [UInt8] {
        let answer: JSON = [
            "version": 1, "success": false, "code": .string(code), "message": .string(message),
        ]
        return answer.serialized() + [0x0A]
    }
}
