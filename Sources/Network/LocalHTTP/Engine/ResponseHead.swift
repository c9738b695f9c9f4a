internal import HTTPMessages

extension HTTPFields {
    /// Writes the field lines.
    fileprivate func write(to buffer: inout OutputBuffer) {
        for field in lines {
            buffer.append(field.name)
            buffer.append(fixed: ": ")
            // Values come from Ringback's own code. If a value contained a line break by mistake, the rest of it would
            // be read as another field. Such a value is sent empty.
            buffer.append(field.value.utf8.contains { $0 < 0x20 && $0 != 0x09 } ? "" : field.value)
            buffer.append(fixed: "\r\n")
        }
    }
}

/// The status line and fields of a response (RFC 9112 section 4).
extension ServerResponse {
    func writeHead(to buffer: inout OutputBuffer, keepsAlive: Bool) {
        if status == 200 {
            buffer.append(fixed: "HTTP/1.1 200 OK\r\n")
        } else {
            buffer.append("HTTP/1.1 \(status) \(ServerResponse.reason(status))\r\n")
        }
        fields.write(to: &buffer)
        // RFC 9110 section 8.6: a 204 response has no Content-Length.
        if case .bytes(let bytes) = body, status != 204 {
            buffer.append(fixed: "Content-Length: ")
            buffer.append(number: bytes.count)
            buffer.append(fixed: "\r\n")
        }
        buffer.append(fixed: keepsAlive ? "\r\n" : "Connection: close\r\n\r\n")
    }

    private static func reason(_ status: Int) -> String {
        switch status {
        case 201: "Created"
        case 202: "Accepted"
        case 204: "No Content"
        case 302: "Found"
        case 303: "See Other"
        case 307: "Temporary Redirect"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 413: "Content Too Large"
        case 415: "Unsupported Media Type"
        case 421: "Misdirected Request"
        case 422: "Unprocessable Content"
        case 423: "Locked"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        default: "Status"
        }
    }
}

/// The bytes of the last 200 response's head, up to the value of `Content-Length`. The immediate handler usually
/// responds with the same fields; the bytes are then copied instead of being serialized again. They stay in memory, so
/// the fields must not contain a secret.
struct RepeatedHead {
    private var fields = HTTPFields()
    private var bytes: [UInt8] = []

    /// Writes the head of a response with a body of `length` bytes.
    mutating func write(_ fields: HTTPFields, length: Int, to buffer: inout OutputBuffer, keepsAlive: Bool) {
        if bytes.isEmpty || !isSame(fields) {
            let start = buffer.count
            buffer.append(fixed: "HTTP/1.1 200 OK\r\n")
            fields.write(to: &buffer)
            buffer.append(fixed: "Content-Length: ")
            self.fields = fields
            bytes = buffer.bytes(from: start)
        } else {
            buffer.append(bytes)
        }
        buffer.append(number: length)
        buffer.append(fixed: keepsAlive ? "\r\n\r\n" : "\r\nConnection: close\r\n\r\n")
    }

    private func isSame(_ others: HTTPFields) -> Bool {
        guard fields.lines.count == others.lines.count else { return false }
        for index in fields.lines.indices {
            let (one, other) = (fields.lines[index], others.lines[index])
            guard one.name == other.name, one.value == other.value else { return false }
        }
        return true
    }
}
