// Attack: a line break in a field's value would add a field of someone else's choice (header injection).

internal import CCurl
internal import Glibc
internal import HTTPMessages
internal import Secrets

/// The header fields of a request, in the form that libcurl takes.
enum RequestFields {
    /// True if the method consists of capital letters, every name is a token (RFC 9110 section 5.6.2), and no value
    /// contains a control character.
    static func areSendable(_ request: HTTPRequest) -> Bool {
        guard !request.method.isEmpty, request.method.utf8.allSatisfy({ $0 >= 0x41 && $0 <= 0x5A }) else {
            return false
        }
        guard request.fields.lines.allSatisfy({ isToken($0.name) && $0.value.utf8.allSatisfy(isValueByte) }) else {
            return false
        }
        return request.authorization?.withBytes { span in
            span.byteOffsets.allSatisfy { isValueByte(unsafe span.unsafeLoad(fromByteOffset: $0, as: UInt8.self)) }
        } ?? true
    }

    /// The list, which the caller frees; nil if there is no memory.
    static func list(of request: HTTPRequest) -> UnsafeMutablePointer<curl_slist>? {
        var list: UnsafeMutablePointer<curl_slist>?
        // Removes the `Expect` field that libcurl would send with larger bodies; it then waits a second for servers
        // that ignore it.
        var lines = ["Expect:"]
        // Removes the form's Content-Type that libcurl would send even if the request has no body.
        if request.body == nil, !request.fields.contains("content-type") { lines.append("Content-Type:") }
        for field in request.fields.lines {
            // To libcurl "Name:" means to remove the field; "Name;" sends it empty.
            lines.append(field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
        }
        for line in lines {
            guard let longer = unsafe ccurl_slist_append(list, line) else {
                unsafe ccurl_slist_free_all(list)
                return nil
            }
            unsafe list = longer
        }
        guard let authorization = request.authorization else { return unsafe list }
        guard let longer = unsafe append(authorization, to: list) else {
            unsafe ccurl_slist_free_all(list)
            return nil
        }
        return unsafe longer
    }

    /// Copies the secret into libcurl's memory through a buffer that is zeroed.
    private static func append(
        _ authorization: Secret, to list: UnsafeMutablePointer<curl_slist>?
    ) -> UnsafeMutablePointer<curl_slist>? {
        let name = Array("Authorization: ".utf8)
        let count = name.count + authorization.count
        let line = UnsafeMutableRawBufferPointer.allocate(byteCount: count + 1, alignment: 1)
        defer {
            if let base = line.baseAddress { unsafe explicit_bzero(base, line.count) }
            unsafe line.deallocate()
        }
        unsafe line.copyBytes(from: name)
        authorization.withBytes { span in
            unsafe span.withUnsafeBytes { bytes in
                unsafe UnsafeMutableRawBufferPointer(rebasing: line[name.count...]).copyBytes(from: bytes)
            }
        }
        unsafe line[count] = 0
        return unsafe ccurl_slist_append(list, line.baseAddress?.assumingMemoryBound(to: CChar.self))
    }

    /// Zeroes the field of the token in a list. If libcurl sends the request again it does so without it.
    static func eraseAuthorization(in list: UnsafeMutablePointer<curl_slist>?) {
        var next = unsafe list
        while let entry = unsafe next {
            if let line = unsafe entry.pointee.data, unsafe strncmp(line, "Authorization:", 14) == 0 {
                unsafe explicit_bzero(line, strlen(line))
            }
            unsafe next = entry.pointee.next
        }
    }

    private static func isValueByte(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7F || byte == 0x09 }

    private static func isToken(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.allSatisfy(HTTPFields.isTokenByte)
    }
}
