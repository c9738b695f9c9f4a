public import StrictJSON

/// A problem document (RFC 9457), as the socket API sends it and as a client reads it.
public struct Problem: Error, Sendable, Equatable {
    public var code: ErrorCode
    public var status: Int
    public var title: String
    /// What failed, which account, and the next step.
    public var detail: String?
    /// The raw value: a newer daemon may send one that is unknown here.
    public var recovery: String
    /// A sentence for the user, where there is something to show.
    public var userMessage: String?
    /// Seconds.
    public var retryAfter: Int?
    /// Members of certain codes: `errors`, `provider_code`, `provider_message`.
    public var extensions: JSONObject

    /// A problem of a code in ``ErrorCode/table``.
    public init(
        _ code: ErrorCode, _ detail: String? = nil, recovery: Recovery? = nil, userMessage: String? = nil,
        retryAfter: Int? = nil, extensions: JSONObject = JSONObject()
    ) {
        let meaning = ErrorCode.table[code]
        self.code = code
        self.status = meaning?.status ?? 500
        self.title = meaning?.title ?? code.rawValue
        self.detail = detail
        self.recovery = (recovery ?? meaning?.recovery ?? .none).rawValue
        self.userMessage = userMessage
        self.retryAfter = retryAfter
        self.extensions = extensions
    }

    /// Reads a document leniently: only an object is required. A missing code is derived from `status`.
    public init(reading document: JSON, status: Int) {
        let object = document.object ?? JSONObject()
        self.code = ErrorCode(rawValue: object["code"]?.string ?? "http_\(status)")
        self.status = object["status"]?.integer ?? status
        self.title = object["title"]?.string ?? "HTTP status \(status)"
        self.detail = object["detail"]?.string
        self.recovery = object["recovery"]?.string ?? Recovery.none.rawValue
        self.userMessage = object["user_message"]?.string
        self.retryAfter = object["retry_after"]?.integer
        let known: Set = ["code", "status", "title", "detail", "recovery", "user_message", "retry_after", "type"]
        self.extensions = JSONObject(object.members.filter { !known.contains($0.name) })
    }

    /// The document.
    public var json: JSON {
        var object = JSONObject([
            .init("title", .string(title)), .init("status", .integer(status)), .init("code", .string(code.rawValue)),
        ])
        if let detail { object["detail"] = .string(detail) }
        object["recovery"] = .string(recovery)
        if let userMessage { object["user_message"] = .string(userMessage) }
        if let retryAfter { object["retry_after"] = .integer(retryAfter) }
        object.members += extensions.members
        return .object(object)
    }
}
