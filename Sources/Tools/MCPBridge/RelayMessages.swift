public import RingbackBase

// What a bridge and the relay say to each other: a connection for each request. First a line of JSON, then the body. The
// relay answers with lines of JSON and, after the head of a response, with pieces of its body, each behind its length.

/// A request that the relay is to send to an account's MCP server.
public struct RelayRequest: Sendable, Equatable {
    public var account: String
    /// `POST`, `GET` or `DELETE`.
    public var method: String
    public var fields: [HTTPFields.Field]
    /// Of the body.
    public var length = 0
    /// The SHA-256 of a token that the server refused, in hexadecimal digits: the daemon is told first.
    public var rejected: String?
    /// Seconds to wait for a sign-in if nobody is signed in: the daemon then asks the user. Nil for no wait.
    public var signInWait: Int?
    /// The server redirected to its URL with or without the last slash.
    public var togglesSlash = false

    public static let maxLine = 65_536

    public init(account: String, method: String, fields: [HTTPFields.Field] = [], length: Int = 0) {
        self.account = account
        self.method = method
        self.fields = fields
        self.length = length
    }

    public var line: [UInt8] {
        let object: JSONObject = [
            "account": account, "method": method, "fields": fields.map(\.json), "length": length,
            "rejected": rejected, "sign_in_wait": signInWait, "slash": togglesSlash ? true : nil,
        ]
        return JSON.object(object).serialized() + [10]
    }

    /// Reads a line without its line feed. Nil if it is no request, or names a field, a method or a length that is not
    /// allowed.
    public init?(parsing line: [UInt8]) {
        guard line.count <= RelayRequest.maxLine, let json = try? JSON(parsing: line),
            let account = json["account"]?.string, let method = json["method"]?.string,
            let length = json["length"]?.integer, (0...JSONLines.limit).contains(length),
            ["POST", "GET", "DELETE"].contains(method), method == "POST" || length == 0,
            let list = json["fields"]?.array, list.count <= 32
        else { return nil }
        let fields = list.compactMap { HTTPFields.Field($0) }
        guard fields.count == list.count,
            fields.allSatisfy({ FieldRules.isRequested($0.name) && FieldRules.isValue($0.value) })
        else { return nil }
        self.init(account: account, method: method, fields: fields, length: length)
        rejected = json["rejected"]?.string
        let digits = "0123456789abcdef".utf8
        if let rejected, rejected.utf8.count != 64 || !rejected.utf8.allSatisfy(digits.contains) { return nil }
        signInWait = json["sign_in_wait"]?.integer.map { min(max($0, 0), 60) }
        togglesSlash = json["slash"]?.bool ?? false
    }
}

extension HTTPFields.Field {
    fileprivate var json: JSON { [.string(name), .string(value)] }

    fileprivate init?(_ json: JSON) {
        guard let pair = json.array, pair.count == 2, let name = pair[0].string, let value = pair[1].string else {
            return nil
        }
        self.init(name, value)
    }
}

public enum RelayReply: Sendable, Equatable {
    /// From here on the server may get the request: until then it can be sent again without harm.
    case sending
    case head(RelayHead)
    /// There is no response, and none will come.
    case refusal(RelayRefusal)
    /// A part of the response's body, at least one byte. A piece that was sent as one may be read as several.
    case piece(ArraySlice<UInt8>)
    case end

    public static let maxPiece = 65_536

    public var bytes: [UInt8] {
        switch self {
        case .sending: Array("{\"sending\":true}\n".utf8)
        case .head(let head): head.json.serialized() + [10]
        case .refusal(let refusal): refusal.json.serialized() + [10]
        case .piece(let piece): RelayReply.prefix(piece.count) + piece
        case .end: RelayReply.prefix(0)
        }
    }

    /// The length of a piece as four bytes, the highest first.
    public static func prefix(_ count: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: count >> (24 - 8 * $0)) }
    }
}

public struct RelayHead: Sendable, Equatable {
    public var status: Int
    public var fields: [HTTPFields.Field]
    /// The SHA-256 of the token that was sent, in hexadecimal digits.
    public var token: String?
    /// A redirect by which the request may be sent again, see ``RelayRequest/togglesSlash``.
    public var movesSlash = false
    /// Why the server refuses the proof beside the token (RFC 9449), by its code: nothing is wrong with the token.
    public var proofRefusal: String?
    /// The scopes that the token lacks, as the server states them; nil if it does not lack any.
    public var missingScope: String?

    public init(status: Int, fields: [HTTPFields.Field] = []) {
        self.status = status
        self.fields = fields
    }

    public func field(_ name: String) -> String? { fields.first { $0.name.lowercased() == name.lowercased() }?.value }

    fileprivate var json: JSON {
        let object: JSONObject = [
            "status": status, "fields": fields.map(\.json), "token": token, "slash": movesSlash ? true : nil,
            "missing_scope": missingScope, "proof_refusal": proofRefusal,
        ]
        return .object(object)
    }

    fileprivate init?(_ json: JSON) {
        guard let status = json["status"]?.integer, let list = json["fields"]?.array else { return nil }
        self.init(status: status)
        fields = list.compactMap { HTTPFields.Field($0) }
        token = json["token"]?.string
        movesSlash = json["slash"]?.bool ?? false
        missingScope = json["missing_scope"]?.string
        proofRefusal = json["proof_refusal"]?.string
    }
}

public struct RelayRefusal: Error, Sendable, Equatable {
    /// A code of the socket API, or `server_unreachable`.
    public var code: String
    public var detail: String
    public var needsSignIn: Bool

    public init(code: String, detail: String, needsSignIn: Bool = false) {
        self.code = code
        self.detail = detail
        self.needsSignIn = needsSignIn
    }

    fileprivate var json: JSON {
        ["error": ["code": .string(code), "detail": .string(detail), "sign_in": .bool(needsSignIn)]]
    }

    fileprivate init?(_ json: JSON) {
        guard let code = json["code"]?.string, let detail = json["detail"]?.string else { return nil }
        self.init(code: code, detail: detail, needsSignIn: json["sign_in"]?.bool ?? false)
    }
}

/// Reads the relay's replies as their bytes arrive.
public struct RelayReplyReader: Sendable {
    /// The start of a line, or of a piece's length.
    private var buffer: [UInt8] = []
    private var hasHead = false
    /// Bytes of the piece that has begun and have not come yet.
    private var left = 0
    private var isOver = false

    public init() {}

    /// Takes bytes and returns the replies that they completed; nil if they are none, and the connection is of no use.
    public mutating func append(_ bytes: [UInt8]) -> [RelayReply]? {
        // Mostly there is nothing left of the last bytes, and these need no copy.
        let source = buffer.isEmpty ? bytes : buffer + bytes
        buffer = []
        var replies: [RelayReply] = []
        var place = 0
        while !isOver {
            if left > 0 {
                // What is there of a piece is passed on as it is: a large piece is not collected first.
                guard place < source.count else { break }
                let end = min(place + left, source.count)
                replies.append(.piece(source[place..<end]))
                left -= end - place
                place = end
            } else if hasHead {
                guard source.count - place >= 4 else { break }
                left = source[place..<(place + 4)].reduce(0) { $0 << 8 | Int($1) }
                guard left <= RelayReply.maxPiece else { return nil }
                place += 4
                guard left == 0 else { continue }
                isOver = true
                replies.append(.end)
            } else {
                guard let end = source[place...].firstIndex(of: 10) else {
                    guard source.count - place <= 2 * RelayRequest.maxLine else { return nil }
                    break
                }
                guard let reply = line(Array(source[place..<end])) else { return nil }
                replies.append(reply)
                place = end + 1
            }
        }
        if !isOver, place < source.count { buffer = Array(source[place...]) }
        return replies
    }

    private mutating func line(_ line: [UInt8]) -> RelayReply? {
        guard let json = try? JSON(parsing: line) else { return nil }
        if let head = RelayHead(json) {
            hasHead = true
            return .head(head)
        }
        if let refusal = json["error"].flatMap({ RelayRefusal($0) }) {
            isOver = true
            return .refusal(refusal)
        }
        return json["sending"]?.bool == true ? .sending : nil
    }
}
