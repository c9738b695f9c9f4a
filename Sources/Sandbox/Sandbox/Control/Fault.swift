internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// Something that goes wrong at an endpoint before the request is understood: what broken servers, proxies and networks
/// do. Well-formed responses that are wrong in their content are ``Perturbation``s.
struct Fault {
    enum Kind {
        case status(Int, retryAfter: String?)
        /// An HTML page, as a captive portal or a broken proxy sends it.
        case html(status: Int)
        /// 307: a client that follows it sends its secrets on.
        case redirect(to: String)
        /// Never responds.
        case hang
        /// Responds when it is released.
        case gate
        /// Announces more than it sends, and closes the connection.
        case truncated
        /// A correct response, with so many bytes of padding.
        case oversize(Int)
        case invalidJSON
        case duplicateMembers
        case emptyBody(status: Int)
        /// An OAuth error (RFC 6749 section 5.2).
        case refusal(code: String, status: Int)
    }

    let endpoint: Endpoint
    /// Applies only to token requests of this grant.
    let grantType: String?
    /// Applies only to this path below the issuer's.
    let path: String?
    let kind: Kind
    /// The description in an error response.
    let message: String?
    /// The body of a Supabase project's error response, in place of its usual form.
    let body: JSON?
    /// How many requests are left; nil for all of them.
    var remaining: Int?
    /// The request takes effect although its response is lost: codes are used up, refresh tokens are rotated.
    let isProcessed: Bool

    func concerns(_ request: SandboxRequest, _ endpoint: Endpoint) -> Bool {
        self.endpoint == endpoint && (grantType == nil || grantType == request.grantType)
            && (path == nil || path == request.path)
    }

    var isHold: Bool {
        switch kind {
        case .hang, .gate: true
        default: false
        }
    }

    /// True for faults that change a correct response.
    static func isProcessedByDefault(_ kind: Kind) -> Bool {
        switch kind {
        case .truncated, .oversize, .invalidJSON, .duplicateMembers: true
        case .status, .html, .redirect, .hang, .gate, .emptyBody, .refusal: false
        }
    }

    /// The response that is sent; `honest` is the correct one, if there is one.
    func answer(insteadOf honest: ServerResponse?) -> ServerResponse {
        switch kind {
        case .status(let status, let retryAfter):
            return Responses.text(
                "This is a fault.", status: status, fields: retryAfter.map { [("Retry-After", $0)] } ?? [])
        case .html(let status): return Pages.error("This is a fault.", status: status)
        case .redirect(let target):
            return Responses.text("This is a fault.", status: 307, fields: [("Location", target)])
        case .emptyBody(let status): return ServerResponse(status: status)
        case .refusal(let code, let status):
            return Responses.refusal(ErrorResponse(code, message ?? "This is a fault.", status: status))
        case .hang, .gate: return honest ?? Responses.text("The sandbox was cleared.", status: 503)
        case .truncated, .oversize, .invalidJSON, .duplicateMembers:
            return spoil(honest ?? Responses.json(["error": "server_error"], status: 500))
        }
    }

    private func spoil(_ honest: ServerResponse) -> ServerResponse {
        guard case .bytes(let body) = honest.body else { return honest }
        var spoilt = honest
        var members = (try? JSON(parsing: body))?.object ?? JSONObject()
        switch kind {
        case .truncated:
            let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
            continuation.yield(Array(body.prefix(body.count / 2)))
            continuation.finish()
            spoilt.fields.set("Content-Length", String(body.count + 1))
            spoilt.body = .stream(stream)
        case .oversize(let size):
            members["padding"] = .string(String(repeating: "a", count: max(size, 0)))
            spoilt.body = .bytes(JSON.object(members).serialized())
        case .invalidJSON: spoilt.body = .bytes(Array(body.dropLast()))
        case .duplicateMembers:
            members.members += members.members.map { .init($0.name, "another") }
            spoilt.body = .bytes(JSON.object(members).serialized())
        case .status, .html, .redirect, .hang, .gate, .emptyBody, .refusal: break
        }
        return spoilt
    }
}
