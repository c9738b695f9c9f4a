import Glibc

@testable import RingbackClient

/// HTTP answers as apps read them, over a real socket: a server that sends the input and closes.
enum HTTPAnswerLaw {
    static func check(_ bytes: [UInt8]) throws {
        // More than a socket's buffer would need a second thread to send it.
        guard bytes.count <= 65_536 else { return }
        let server = try listener.get()
        let deadline = ContinuousClock.now + .seconds(5)
        let exchange = HTTPExchange(try SocketConnection(unixPath: server.path, deadline: deadline))
        let descriptor = accept(server.descriptor, nil, nil)
        guard descriptor >= 0 else { throw LawBroken(law: "a connection can be accepted") }
        let sent = unsafe bytes.withUnsafeBytes { buffer in
            unsafe send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL))
        }
        close(descriptor)
        try hold("the input was sent", sent == bytes.count)
        let head: HTTPExchange.Head
        let body: [UInt8]
        do throws(RingbackError) {
            head = try exchange.readHead()
            body = try exchange.readBody(limit: 32_768)
        } catch {
            return try hold("an answer's fault is named", [.badAnswer, .noDaemon].contains(error.kind))
        }
        try check(head, body, bytes)
    }

    private static func check(_ head: HTTPExchange.Head, _ body: [UInt8], _ bytes: [UInt8]) throws {
        try hold("a status is a final one", (200...999).contains(head.status))
        try hold("a body is no longer than its answer", body.count <= bytes.count)
        for (name, value) in head.fields {
            try hold("a field has a name", !name.isEmpty)
            try hold("a field is one line", !(name + value).utf8.contains { $0 == 10 || $0 == 13 || $0 == 0 })
        }
        let codings = head.all("transfer-encoding")
        let lengths = head.all("content-length")
        let hasBody = head.status != 204 && head.status != 304
        if hasBody, let coding = codings.first {
            try hold("chunks are the only coding", codings.count == 1 && coding.utf8.count == 7)
        } else if hasBody, let length = lengths.first {
            try hold("a length is digits", length.utf8.allSatisfy { (0x30...0x39).contains($0) })
            try hold("lengths agree", lengths.allSatisfy { $0 == length })
            try hold("a body has its length", Int(length) == body.count)
        }
    }

    private struct Listener: Sendable {
        let path: String
        let descriptor: Int32
    }

    private static let listener = Result { () throws -> Listener in
        var template = Array("/tmp/ringback-fuzz-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw LawBroken(law: "a directory can be made") }
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self) + "/answers"
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: Array(path.utf8)) }
        let status = unsafe withUnsafePointer(to: &address) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard descriptor >= 0, status == 0, listen(descriptor, 4) == 0 else {
            throw LawBroken(law: "a socket can listen")
        }
        return Listener(path: path, descriptor: descriptor)
    }
}
