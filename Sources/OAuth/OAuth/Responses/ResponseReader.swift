import RingbackBase

/// The checks of all responses: status, JSON, error. A status that means "later" is never treated as an error response,
/// whatever the body says, because proxies send bodies too.
enum ResponseReader {
    /// Throws for responses that say nothing about the request: status 408, 425, 429, 5xx, redirects, truncated ones.
    static func checkStatus(_ response: HTTPResponse, of kind: OAuthError.Response) throws(OAuthError) {
        switch response.status {
        case 408, 425, 429, 500...599: throw failure(response, kind) ?? unavailable(response, kind)
        case 300..<400:
            // Following a redirect could send codes and tokens to a host that is not configured.
            throw .invalid(kind, reason: "a redirect, which is not followed (HTTP \(response.status))")
        default: break
        }
        // A truncated response may mean the opposite of the complete one.
        switch response.truncation {
        case nil: break
        case .tooLarge?: throw .invalid(kind, reason: "the response is larger than Ringback accepts")
        default: throw .invalid(kind, reason: "the response was truncated")
        }
    }

    /// The text for people: OAuth's `error_description`, or the member that the server has in its place.
    static func statedText(in object: JSONObject) -> String? {
        let names = ["error_description", "message", "msg", "detail", "errorSummary", "error_message", "description"]
        let details = object["detail"]?.array ?? object["errors"]?.array ?? []
        let nested = details.first.flatMap { $0["message"] ?? $0["msg"] ?? $0["detail"] ?? $0 }
        let texts = names.map { object[$0] } + [object["error"]?["message"], nested, object["title"]]
        return texts.lazy.compactMap { CheckedText.description($0?.string) }.first
    }

    /// A 5xx response with an OAuth error. Whatever the error is, it proves nothing about the grant.
    private static func failure(_ response: HTTPResponse, _ kind: OAuthError.Response) -> OAuthError? {
        guard response.status >= 500, !response.isTruncated, [.token, .pushedAuthorization].contains(kind),
            let object = try? object(in: response, of: kind)
        else { return nil }
        let stated = try? errorResponse(in: object, status: response.status, of: kind)
        let foreign = statedText(in: object).map {
            OAuthError.ErrorResponse(code: OAuthError.unspecified, message: $0, status: response.status)
        }
        guard let errorResponse = stated ?? foreign else { return nil }
        return .failing(errorResponse, retryAfter: RetryAfter.seconds(in: response.fields))
    }

    static func unavailable(_ response: HTTPResponse, _ kind: OAuthError.Response) -> OAuthError {
        .unavailable(kind, status: response.status, retryAfter: RetryAfter.seconds(in: response.fields))
    }

    /// The body as a JSON object. Throws `.invalid`.
    static func object(in response: HTTPResponse, of kind: OAuthError.Response) throws(OAuthError) -> JSONObject {
        guard !response.body.isEmpty else {
            throw .invalid(kind, reason: "an empty response (HTTP \(response.status))")
        }
        let json: JSON
        do {
            json = try JSON(parsing: UnicodeText.utf8(response.body.revealedBytes()))
        } catch {
            throw .invalid(kind, reason: "\(shape(of: response, error)) (HTTP \(response.status))")
        }
        guard let object = json.object else {
            throw .invalid(kind, reason: "JSON, but not an object (HTTP \(response.status))")
        }
        return object
    }

    /// The JSON object of a success. Throws `.refused` for an error response, whatever its status, `.unavailable` or
    /// `.invalid`.
    static func success(in response: HTTPResponse, of kind: OAuthError.Response) throws(OAuthError) -> JSONObject {
        try checkStatus(response, of: kind)
        let object = try object(in: response, of: kind)
        if let errorResponse = try errorResponse(in: object, status: response.status, of: kind) {
            throw .refused(errorResponse)
        }
        return object
    }

    private static func shape(of response: HTTPResponse, _ error: JSONError) -> String {
        if let coding = response.fields["Content-Encoding"], !coding.isEmpty {
            return "a body with the content coding \(CheckedText.code(coding)), which cannot be decoded"
        }
        return mediaType(of: response) == "text/html" ? "a web page in place of JSON" : "not JSON: \(error)"
    }

    /// The media type in lower case, without parameters.
    static func mediaType(of response: HTTPResponse) -> String? {
        guard let value = response.fields["Content-Type"] else { return nil }
        let type = value.utf8.prefix { $0 != UInt8(ascii: ";") && $0 != 0x20 && $0 != 0x09 }
        return String(decoding: type, as: UTF8.self).lowercased()
    }

    /// The OAuth error in a response (RFC 6749 section 5.2), also in the nested forms of some servers. Throws
    /// `.invalid` if it is not a text.
    static func errorResponse(
        in object: JSONObject, status: Int, of kind: OAuthError.Response
    ) throws(OAuthError) -> OAuthError.ErrorResponse? {
        switch object["error"] {
        case nil, .null?, .string("")?: return nil
        case .string(let code)?:
            return OAuthError.ErrorResponse(
                code: CheckedText.code(code), message: statedText(in: object), status: status)
        case .object(let nested)?:
            let words = [nested["code"]?.string, nested["status"]?.string, nested["type"]?.string]
            let code = words.compactMap { $0 }.first { !$0.isEmpty } ?? nested["code"]?.integer.map(String.init)
            return OAuthError.ErrorResponse(
                code: CheckedText.code(code ?? OAuthError.unspecified), message: statedText(in: object), status: status)
        default: throw .invalid(kind, reason: "an error that is not text (HTTP \(status))")
        }
    }
}

/// Reads lifetimes leniently: as a number, a quoted number or a fraction. A lifetime is less important than the token
/// beside it, so no form of it makes a response fail.
enum LenientNumber {
    /// A year in seconds; longer lifetimes are reduced to it.
    static let longest = 31_536_000

    /// Whole seconds, 0...one year; nil if the value is not a number.
    static func seconds(_ value: JSON?) -> Int? {
        switch value {
        case .integer(let seconds): min(max(seconds, 0), longest)
        case .double(let seconds): clamped(seconds)
        case .string(let text): number(text).flatMap(clamped)
        default: nil
        }
    }

    /// Unix seconds of the years 1970 to 9999: a number, a quoted number, or a date and time (RFC 3339). A larger
    /// number is in milliseconds.
    static func instant(_ value: JSON?) -> Int? {
        let seconds: Double? =
            switch value {
            case .integer(let seconds)?: Double(seconds)
            case .double(let seconds)?: seconds
            case .string(let text)?: number(text) ?? Timestamp.seconds(of: text).map(Double.init)
            default: nil
            }
        guard let seconds, seconds > 0 else { return nil }
        let latest = 253_402_300_799.0
        let stated = seconds > latest ? seconds / 1_000 : seconds
        return stated <= latest ? Int(stated) : nil
    }

    private static func clamped(_ seconds: Double) -> Int? {
        guard !seconds.isNaN else { return nil }
        return Int(min(max(seconds, 0), Double(longest)))
    }

    /// Only decimal digits, signs and exponents: `Double` would also read "nan", "inf" and hexadecimal.
    private static func number(_ text: String) -> Double? {
        guard text.utf8.count <= 32, text.utf8.allSatisfy({ "0123456789+-.eE".utf8.contains($0) }) else { return nil }
        return Double(text)
    }
}

/// Text from a provider, of limited length, without terminal escapes, line breaks and characters that change the
/// direction of the text.
enum CheckedText {
    static let maxCode = 64
    static let maxDescription = 300

    /// The characters that RFC 6749 appendix A.7 allows (%x20-21 / %x23-5B / %x5D-7E); others become question marks.
    static func code(_ text: String) -> String {
        var kept = String.UnicodeScalarView()
        for scalar in text.unicodeScalars.prefix(maxCode) {
            let isAllowed = scalar.value >= 0x20 && scalar.value <= 0x7E && scalar != "\"" && scalar != "\\"
            kept.append(isAllowed ? scalar : "?")
        }
        return String(kept)
    }

    /// Nil if it is empty. Its letters may be of any language, though RFC 6749 appendix A.8 allows ASCII only. White
    /// space and line breaks become single blanks; control, format and unassigned characters are left out.
    static func description(_ text: String?) -> String? {
        var kept = String.UnicodeScalarView()
        var isBlankDue = false
        for scalar in (text ?? "").unicodeScalars.prefix(4 * maxDescription) {
            switch scalar.properties.generalCategory {
            case .lineSeparator, .paragraphSeparator, .spaceSeparator: isBlankDue = true
            case .control where [0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x85].contains(scalar.value): isBlankDue = true
            case .control, .format, .privateUse, .surrogate, .unassigned: break
            default:
                if isBlankDue, !kept.isEmpty { kept.append(" ") }
                isBlankDue = false
                kept.append(scalar)
            }
            if kept.count >= maxDescription { break }
        }
        return kept.isEmpty ? nil : String(kept)
    }
}

/// Token responses in form encoding, which RFC 6749 does not allow. GitHub sends them unless JSON is requested.
extension ResponseReader {
    /// From JSON or a form. The body decides, because some servers send either with the wrong media type.
    static func tokenObject(in response: HTTPResponse) throws(OAuthError) -> JSONObject {
        guard isForm(response) else { return try object(in: response, of: .token) }
        let pairs: [FormEncoding.Pair]
        do {
            pairs = try FormEncoding.parse(trimmed(UnicodeText.utf8(response.body.revealedBytes())))
        } catch {
            throw .invalid(.token, reason: "a form that is not well-formed (HTTP \(response.status))")
        }
        var names: Set<String> = []
        var members: [JSONObject.Member] = []
        for pair in pairs {
            guard names.insert(pair.name).inserted else {
                throw .invalid(.token, reason: "a form with a repeated name (HTTP \(response.status))")
            }
            members.append(.init(pair.name, .string(pair.value)))
        }
        guard !members.isEmpty else { throw .invalid(.token, reason: "an empty response (HTTP \(response.status))") }
        return JSONObject(members)
    }

    /// True for a form by its media type, unless the body begins with a brace; and for a body that begins with a name
    /// and an equals sign and has one of the names of a token response.
    static func isForm(_ response: HTTPResponse) -> Bool {
        let body = trimmed(UnicodeText.utf8(response.body.revealedBytes()))
        if mediaType(of: response) == "application/x-www-form-urlencoded" { return body.first != UInt8(ascii: "{") }
        let first = body.prefix { $0 != UInt8(ascii: "=") }
        guard first.count < min(body.count, 64), first.allSatisfy(isNameByte) else { return false }
        return body.split(separator: UInt8(ascii: "&")).contains { pair in
            ["access_token=", "refresh_token=", "error="].contains { pair.starts(with: $0.utf8) }
        }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."): true
        default: false
        }
    }

    /// Without surrounding white space; some servers end the body with a line break.
    private static func trimmed(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
        var rest = bytes.drop(while: isSpace)
        while let last = rest.last, isSpace(last) { rest.removeLast() }
        return rest
    }

    private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }
}
