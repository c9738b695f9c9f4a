// Maps libcurl's many error codes to the few cases that callers distinguish.

internal import CCurl
internal import HTTPMessages

extension CURLcode {
    /// True if this error can end a body that has begun. The part that arrived is then genuine.
    var breaksOff: Bool {
        switch self {
        // WRITE_ERROR means that our own callback accepted no more bytes.
        case CURLE_PARTIAL_FILE, CURLE_RECV_ERROR, CURLE_OPERATION_TIMEDOUT, CURLE_WRITE_ERROR,
            CURLE_WEIRD_SERVER_REPLY:
            true
        default: false
        }
    }
}

enum CurlFailure {
    /// True if a TLS handshake failed because what the server sent is not TLS. No code of libcurl says so; the reason
    /// of OpenSSL is in the words.
    static func isPlainText(_ words: String) -> Bool {
        words.contains("wrong version number") || words.contains("packet length too long")
    }

    /// True if the body of a 400 is that of a server that speaks TLS and was sent a request without it: the texts of
    /// nginx, of Apache's httpd and of Go's server.
    static func asksForTLS(_ body: [UInt8]) -> Bool {
        guard body.count <= 4_096 else { return false }
        let text = String(decoding: body, as: UTF8.self)
        return [
            "plain HTTP request was sent to HTTPS port", "speaking plain HTTP to an SSL-enabled server port",
            "sent an HTTP request to an HTTPS server",
        ].contains { text.contains($0) }
    }
}

extension HTTPClientError {
    /// The meaning of a failed transfer. `hasHead`: the head of the response was complete, so a lost connection
    /// truncated the body.
    init(_ result: CURLcode, host: String, hasHead: Bool) {
        switch result {
        case CURLE_OPERATION_TIMEDOUT: self = .timedOut(host: host)
        case CURLE_URL_MALFORMAT: self = .refusedURL
        case CURLE_FILESIZE_EXCEEDED: self = .tooLarge(host: host)
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_PINNEDPUBKEYNOTMATCH,
            CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR,
            CURLE_SSL_CRL_BADFILE, CURLE_SSL_INVALIDCERTSTATUS, CURLE_USE_SSL_FAILED:
            self = .untrusted(host: host, reason: HTTPClientError.words(for: result))
        // UNSUPPORTED_PROTOCOL is what libcurl reports for a response without a status line. The URL was checked
        // before.
        case CURLE_PARTIAL_FILE, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING, CURLE_UNSUPPORTED_PROTOCOL,
            CURLE_WRITE_ERROR:
            self = .malformed(host: host)
        case CURLE_RECV_ERROR where hasHead: self = .malformed(host: host)
        default: self = .unreachable(host: host, reason: HTTPClientError.words(for: result))
        }
    }

    private static func words(for result: CURLcode) -> String {
        switch result {
        case CURLE_COULDNT_RESOLVE_HOST: "the name could not be resolved"
        case CURLE_COULDNT_CONNECT: "the connection was refused"
        case CURLE_GOT_NOTHING: "the server closed the connection without a response"
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR: "the connection broke"
        case CURLE_OUT_OF_MEMORY: "out of memory"
        // Our own callback, see `EasyOptions.sendWithin`.
        case CURLE_ABORTED_BY_CALLBACK: "the request was not sent, since the time for it was over"
        case CURLE_SSL_CONNECT_ERROR: "the TLS handshake failed"
        case CURLE_PEER_FAILED_VERIFICATION: "the certificate is not trusted for this name"
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH: "the server's key is not in pinned_public_keys"
        case CURLE_SSL_CACERT_BADFILE: "the certificate authorities cannot be read"
        // libcurl's own text. It contains no address, URL or header.
        default: unsafe String(cString: ccurl_easy_strerror(result))
        }
    }
}
