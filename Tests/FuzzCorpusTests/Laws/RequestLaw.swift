import RingbackBase

@testable import LocalHTTP

/// Requests as the local servers judge them: how the bytes were cut on their way changes nothing, and what is accepted
/// can be read in one way only.
enum RequestLaw {
    private struct Outcome: Equatable {
        struct Request: Equatable {
            let head: [UInt8]
            let body: [UInt8]
        }
        var requests: [Request] = []
        var refusal: Int?
    }

    static func check(_ bytes: [UInt8]) throws {
        for isSingle in [false, true] {
            var limits = ServerLimits()
            limits.isSingleRequest = isSingle
            limits.maxHead = 2_048
            limits.maxBody = 1_024
            let whole = try outcome(of: [bytes[...]], limits)
            let step = 1 + bytes.count % 7
            let pieces = stride(from: 0, to: bytes.count, by: step).map { bytes[$0..<min($0 + step, bytes.count)] }
            try hold("how the bytes are cut changes nothing", outcome(of: pieces, limits) == whole)
            let cache = HeadCache()
            for _ in 0..<2 {
                try hold("a head that is known is read as the same", outcome(of: [bytes[...]], limits, cache) == whole)
            }
        }
    }

    private static func outcome(
        of pieces: [ArraySlice<UInt8>], _ limits: ServerLimits, _ cache: HeadCache? = nil
    ) throws -> Outcome {
        var reader = RequestReader(limits: limits, cache: cache)
        var spare: ReceiveBuffer?
        var outcome = Outcome()
        for piece in pieces {
            var rest = piece
            while !rest.isEmpty {
                let (count, _) = unsafe reader.receive(spare: &spare) { room in
                    unsafe room.copyBytes(from: rest.prefix(room.count))
                    return min(room.count, rest.count)
                }
                rest = rest.dropFirst(count)
            }
            steps: while true {
                switch reader.next() {
                case .incomplete: break steps
                case .expectsContinue: continue
                case .refusal(let status):
                    try hold("a refusal is a client's error", [400, 413, 431, 505].contains(status))
                    outcome.refusal = status
                    return outcome
                case .request(let head, let body):
                    try check(head, body, limits)
                    outcome.requests.append(.init(head: text(of: head), body: body))
                    cache?.keep()
                }
            }
        }
        return outcome
    }

    private static func check(_ head: RequestHead, _ body: [UInt8], _ limits: ServerLimits) throws {
        let fields = head.fields
        let hosts = fields[all: "host"].count
        try hold("there is exactly one Host", hosts == 1 || (hosts == 0 && !head.isCurrent))
        try hold("a body has one length", fields[all: "content-length"].count <= 1)
        try hold("a body has no coding", !fields.contains("transfer-encoding"))
        try hold("a body has its length", body.count == head.contentLength && body.count <= limits.maxBody)
        try hold("a target is a path", head.target.hasPrefix("/") && head.target.isPrintableASCII)
        try hold("a target has no space", !head.target.utf8.contains(0x20))
        try hold("a method is a word", !head.method.isEmpty && head.method.isPrintableASCII)
        try hold("there are at most 64 fields", fields.lines.count <= 64)
        for line in fields.lines {
            try hold("a field's name is a token", !line.name.isEmpty && !line.name.utf8.contains { $0 <= 0x20 })
            try hold("a field is one line", line.value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
        }
        let request = ServerRequest(
            method: head.method, target: head.target, fields: fields, body: body, peer: .local(uid: 0, pid: 0))
        try hold(
            "path and query are the target", request.path + (request.query.map { "?" + $0 } ?? "") == head.target)
        let written = text(of: head)
        let again = try RequestHead(parsing: written.span)
        try hold("what is written is read as the same", text(of: again) == written)
        try hold("and lives as long", again.keepsAlive == head.keepsAlive && again.expectation == head.expectation)
    }

    private static func text(of head: RequestHead) -> [UInt8] {
        var text = "\(head.method) \(head.target) HTTP/1.\(head.isCurrent ? 1 : 0)\r\n"
        for line in head.fields.lines { text += "\(line.name): \(line.value)\r\n" }
        return Array("\(text)\r\n".utf8)
    }
}

/// Requests to a relay, and the fields of a response as lines after them: what is passed on is for the origin alone, and
/// has no credentials of the client.
enum RelayedLaw {
    static func check(_ bytes: [UInt8]) throws {
        guard let url = try? WebURL(parsing: "https://api.example.org/v1"), let origin = RelayedOrigin(url, port: 8701)
        else { return }
        let whole = outcome(of: [bytes[...]], origin)
        let step = 1 + bytes.count % 7
        let pieces = stride(from: 0, to: bytes.count, by: step).map { bytes[$0..<min($0 + step, bytes.count)] }
        try hold("how the bytes are cut changes nothing", outcome(of: pieces, origin) == whole)
        let reference = String(decoding: bytes, as: UTF8.self)
        let rewritten = origin.reference(reference)
        try hold("a reference is rewritten once", origin.reference(rewritten) == rewritten)
        let links = origin.links(reference)
        try hold("links are rewritten once", origin.links(links) == links)
        for request in whole.requests {
            try hold("the server is the origin", request.url.origin == url.origin)
            let segments = OriginPlace(request.url).segments
            try hold("the path is the origin's or below it", segments?.first == "v1")
            for name in ["Authorization", "X-API-Key", "Cookie", "Host", "Connection", "Transfer-Encoding", "Upgrade"] {
                try hold("no field of the client's own", !request.fields.contains(name))
            }
            try hold("the response can be searched", request.fields[all: "Accept-Encoding"] == ["identity"])
        }
    }

    private struct Outcome: Equatable {
        var requests: [RelayedRequest] = []
        var body: [UInt8] = []
        var status: Int?

        static func == (left: Outcome, right: Outcome) -> Bool {
            left.requests.map(\.url) == right.requests.map(\.url) && left.body == right.body
                && left.status == right.status
        }
    }

    private static func outcome(of pieces: [ArraySlice<UInt8>], _ origin: RelayedOrigin) -> Outcome {
        var (found, input, searched, body) = (Outcome(), [UInt8](), 0, RelayedBody(.none))
        for piece in pieces {
            input += piece
            do throws(RelayedRequest.Refusal) {
                while true {
                    let taken = try body.take(from: &input, atMost: 64)
                    found.body += taken
                    guard body.isOver, taken.count < 64 else {
                        if taken.isEmpty { break }
                        continue
                    }
                    guard let next = try RelayedRequest.take(from: &input, searched: &searched, for: origin) else {
                        break
                    }
                    found.requests.append(next)
                    body = RelayedBody(next.body)
                }
            } catch {
                found.status = error.status
                return found
            }
        }
        return found
    }
}
