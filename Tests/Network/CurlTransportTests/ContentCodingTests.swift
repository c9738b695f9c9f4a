import CurlTransport
import RingbackBase
import Testing

private let text = #"{"access_token":"a1","token_type":"Bearer","refresh_token":"r2","expires_in":3600}"#

/// The text in the codings, as other implementations encode it.
private enum Encoded {
    static let gzip = bytes(
        "H4sIAAAAAAACA6tWSkxOTi0uji/Jz07NU7JSSjRU0lECc+JLKgtSgSJOqYlFqUVA0aLUtKLU4gy40iIjoGBqRUEmUDQ+EyhibGZgUAsARgIVt1IAAAA="
    )
    static let zlib = bytes(
        "eJyrVkpMTk4tLo4vyc9OzVOyUko0VNJRAnPiSyoLUoEiTqmJRalFQNGi1LSi1OIMuNIiI6BgakVBJlA0PhMoYmxmYFALAIp4G2o=")
    static let rawDeflate = bytes(
        "q1ZKTE5OLS6OL8nPTs1TslJKNFTSUQJz4ksqC1KBIk6piUWpRUDRotS0otTiDLjSIiOgYGpFQSZQND4TKGJsZmBQCwA=")
    static let brotli = bytes(
        "G1EAAAT+bUf+eLDqLhhGsgsGSfC1yykHnAUoLUgTCvQAeJjIAaWHlr8PvWTTQ7AbBskXzEOwaquEoUrlOdSlxzx3Y7p/")
    static let zstd = bytes(
        "KLUv/SBSRQIAQkQPF3BF6up57BXn+6lkUVU8ps6Ajgeg6gkBgXOIAd1YyiJzSjcLeGTRKG7Gomoxum55aXOgRrciyUuZXUsNCAIAOFUDXFMM")
    static let gzipTwice = bytes(
        "H4sIAAAAAAACA5Pv5mAAASbm1WFePn5+unp9+ifP+50N3hTkZRJyKZCp+JG3FndQo5Lfyk7Xla4OFxdd2bLoyiOeHZeUlBckZLk6qgWY2AlrJOWkJQRwM7gxiW4PApoGALch7KlWAAAA"
    )
    static let brotliOfGzip = bytes(
        "iyqAH4sIAAAAAAACA6tWSkxOTi0uji/Jz07NU7JSSjRU0lECc+JLKgtSgSJOqYlFqUVA0aLUtKLU4gy40iIjoGBqRUEmUDQ+EyhibGZgUAsARgIVt1IAAAAD"
    )
    static let gzipOfTwoMembers = bytes(
        "H4sIAAAAAAACA6tWSkxOTi0uji/Jz07NU7JSSjRU0lECc+JLKgtSgSJOqYlFqQD28LglKAAAAB+LCAAAAAAAAgMrUtJRKkpNK0otzogvyc9OzVOyUioyAgqmVhRkAkXjM4EixmYGBrUA+N2IfCoAAAA="
    )
    /// 64 MiB of zero bytes, encoded twice.
    static let bomb = bytes(
        "H4sIAAAAAAACA+3cr05CcRTA8YtcNyYbYiAZ5BGIFAYazAbNjgcgkmVzJgsvQWZjc7PSeAO02f0TnDM5L9z7GL/z+aSTTzw7+549NrLSQf1jXavth9n8f/nVOMoAAACAxM1e7+vlMSDrFtvLqxsAAAAgdePjVl4dBf5uT8+tAwAAAJL3MOi3qw+B77tJbh0AAACQvM7v26i6BWyKp5Nr+wAAAIDkvQgGAAAAQCiCAQAAABCLYAAAAADEIhgAAAAAwQgGAAAAQCyCAQAAABCLYAAAAADEIhgAAAAAwQgGAAAAQCyCAQAAABDLYtDvlo8B7Z9iOrw4zAAAAIjkufnZe1/th3wHPEzs+uL+AAA="
    )

    private static func bytes(_ text: String) -> [UInt8] { Base64.decode(text) ?? [] }
}

private struct Body: CustomTestStringConvertible, Sendable {
    /// Of the field lines.
    let testDescription: String
    let bytes: [UInt8]

    init(_ fields: String, _ bytes: [UInt8]) {
        testDescription = fields
        self.bytes = bytes
    }
}

@Suite(.timeLimit(.minutes(1))) struct `A response with a content coding` {
    private let client = CurlClient(version: "0.1-test")

    private func server(_ body: Body, status: String = "200 OK") -> ScriptedServer {
        ScriptedServer { connection in
            _ = connection.readRequest()
            let fields = body.testDescription.isEmpty ? "" : "\(body.testDescription)\r\n"
            connection.write("HTTP/1.1 \(status)\r\n\(fields)Content-Length: \(body.bytes.count)\r\n\r\n")
            connection.write(body.bytes)
        }
    }

    private func send(
        _ server: ScriptedServer, keepingPart: Bool = false, maxBody: Int = 1 << 20
    ) async throws(HTTPClientError) -> HTTPResponse {
        try await client.send(
            HTTPRequest(
                method: "POST", url: server.url(), body: Secret("grant_type=refresh_token"),
                limits: HTTPLimits(maxBody: maxBody), keepsPartialBody: keepingPart))
    }

    private static let decodable = [
        Body("Content-Encoding: gzip", Encoded.gzip), Body("Content-Encoding: X-GZip", Encoded.gzip),
        Body("Content-Encoding: gzip", Encoded.gzipOfTwoMembers),
        Body("Content-Encoding: gzip", Encoded.gzip + [0, 0]),
        Body("Content-Encoding: deflate", Encoded.zlib), Body("Content-Encoding: deflate", Encoded.rawDeflate),
        Body("Content-Encoding: deflate", Encoded.gzip), Body("Content-Encoding: br", Encoded.brotli),
        Body("Content-Encoding: zstd", Encoded.zstd), Body("Content-Encoding: zstd", Encoded.zstd + [0, 0]),
        Body("Content-Encoding: gzip, gzip", Encoded.gzipTwice), Body("Content-Encoding: gzip", Encoded.gzipTwice),
        Body("Content-Encoding: gzip,br", Encoded.brotliOfGzip),
        Body("Content-Encoding: identity, gzip\r\nContent-Encoding: ,\r\nContent-Encoding: br", Encoded.brotliOfGzip),
        Body("", Encoded.gzip), Body("Content-Encoding: identity", Encoded.gzip),
        Body("Content-Encoding:", Encoded.gzip),
        Body("Content-Encoding: gzip", Array(text.utf8)), Body("Content-Encoding: deflate", Array(text.utf8)),
        Body("Content-Encoding: br", Array(text.utf8)), Body("Content-Encoding: zstd", Array(text.utf8)),
        Body("Content-Encoding: foo", Array(text.utf8)), Body("Content-Encoding: utf-8", Array(text.utf8)),
        Body("Content-Encoding: identity", Array(text.utf8)), Body("Content-Encoding:", Array(text.utf8)),
    ]

    @Test(arguments: decodable)
    fileprivate func `a body with a content coding is decoded, and taken as it came if it is not encoded`(
        body: Body
    ) async throws {
        for (status, keepingPart) in [("200 OK", true), ("200 OK", false), ("400 Bad Request", true)] {
            let response = try await send(server(body, status: status), keepingPart: keepingPart)
            #expect(response.body.revealed() == text)
            #expect(!response.isTruncated)
            #expect(!response.fields.contains("Content-Encoding") || body.bytes == Array(text.utf8))
        }
    }

    @Test func `no request asks for a content coding`() async throws {
        let server = ScriptedServer { connection in
            let request = connection.readRequest() ?? ""
            connection.answer(body: request.lowercased().contains("accept-encoding") ? "asked" : "not asked")
        }
        #expect(try await send(server).body.revealed() == "not asked")
    }

    @Test(arguments: [
        Body("Content-Encoding: gzip", Encoded.gzip.dropLast(20)),
        Body("Content-Encoding: gzip", Encoded.gzip.dropLast()),
        Body("Content-Encoding: gzip", Encoded.gzip.dropLast(8) + [1, 2, 3, 4, 5, 6, 7, 8]),
        Body("Content-Encoding: deflate", Encoded.zlib.dropLast(20)),
        Body("Content-Encoding: gzip, br", Encoded.brotliOfGzip.dropLast(20)),
    ]) fileprivate func `a damaged encoded body is decoded up to the damage for a request that keeps partial bodies`(
        body: Body
    ) async throws {
        let response = try await send(server(body), keepingPart: true)
        #expect(response.isTruncated)
        #expect(response.body.revealed().hasPrefix(#"{"access_token""#))
        #expect(text.hasPrefix(response.body.revealed()))
        await #expect(throws: HTTPClientError.self) { try await send(server(body)) }
        // The status of an error counts.
        let refusal = try await send(server(body, status: "503 Service Unavailable"), keepingPart: true)
        #expect(refusal.status == 503 && refusal.body.revealedBytes() == body.bytes)
    }

    @Test func `an encoded body that was cut off is decoded as far as it came`() async throws {
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.write("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 999\r\n\r\n")
            connection.write(Encoded.gzip.dropLast(20))
        }
        let response = try await send(server, keepingPart: true)
        #expect(response.isTruncated && response.body.revealed().hasPrefix(#"{"access_token""#))
    }

    @Test(arguments: [
        Body("Content-Encoding: foo", [1, 2, 3, 0xFF]), Body("Content-Encoding: br", [0xFF, 0xFF, 0xFF, 0]),
        Body("Content-Encoding: gzip", [0x1F, 0x8B]), Body("Content-Encoding: gzip, foo", Encoded.gzip),
        Body("Content-Encoding: zstd", [0x28, 0xB5, 0x2F, 0xFD, 0xFF]), Body("Content-Encoding: gzip", [7]),
        Body("Content-Encoding: gzip,gzip,gzip,gzip,gzip,gzip", Encoded.gzip),
    ]) fileprivate func `a body that cannot be decoded is passed on as it came, with its Content-Encoding`(
        body: Body
    ) async throws {
        let response = try await send(server(body), keepingPart: true)
        #expect(response.body.revealedBytes() == body.bytes)
        #expect(response.fields.contains("Content-Encoding"))
    }

    @Test(arguments: ["Content-Encoding: gzip, gzip", "Content-Encoding: gzip", ""])
    func `an encoded body that is larger than the limit when decoded is refused`(
        fields: String
    ) async throws {
        let body = Body(fields, Encoded.bomb)
        await #expect(throws: HTTPClientError.self) { try await send(server(body)) }
        let response = try await send(server(body), keepingPart: true, maxBody: 5_000)
        #expect(response.isTruncated && response.body.count == 5_000)
        // The limit is for the decoded body: a larger encoded one does not occur.
        #expect(try await send(server(Body("Content-Encoding: gzip", Encoded.gzip)), maxBody: 101).body.count == 82)
        await #expect(throws: HTTPClientError.self) {
            try await send(server(Body("Content-Encoding: gzip", Encoded.gzip)), maxBody: 81)
        }
    }

    /// What a stream gives, taken in pieces of so many bytes, and whether it is whole.
    private func stream(_ server: ScriptedServer, piece: Int, upTo limit: Int = .max) throws -> (
        bytes: [UInt8], isWhole: Bool
    ) {
        let streams = try #require(CurlStreams(version: "0.1-test"))
        let transfer = try #require(streams.start(HTTPRequest(url: server.url()), length: nil))
        var bytes: [UInt8] = []
        var most = 0
        while bytes.count < limit {
            streams.advance()
            most = max(most, transfer.available)
            let taken = transfer.take(atMost: piece)
            bytes += taken
            if taken.isEmpty {
                if transfer.outcome != nil { break }
                var none: [CurlStreams.Watched] = []
                streams.wait(&none, atMost: 1_000)
            }
        }
        #expect(most <= StreamTransfer.window)
        streams.cancel(transfer)
        if case .whole? = transfer.outcome { return (bytes, true) }
        return (bytes, false)
    }

    @Test(arguments: decodable.filter { $0.testDescription.contains("g: ") }, [1, 65_536])
    fileprivate func `an encoded stream is decoded piece by piece`(body: Body, piece: Int) throws {
        // Brotli and deflate without a header have no magic number by which a body without the coding is known.
        let hasMagic = ["gzip", "zstd", "foo", "utf-8"].contains { body.testDescription.hasSuffix($0) }
        let isPlain = body.bytes == Array(text.utf8)
        guard !isPlain || hasMagic, !body.testDescription.hasSuffix("identity"), body.bytes != Encoded.gzipTwice else {
            return
        }
        let result = try stream(server(body), piece: piece)
        #expect(String(decoding: result.bytes, as: UTF8.self) == text && result.isWhole)
    }

    @Test func `an encoded stream is decoded as soon as a part of it is there`() throws {
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.write("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")
            connection.write(Encoded.gzip.dropLast(20))
            connection.waitUntilClosed()
        }
        #expect(try stream(server, piece: 10, upTo: 30).bytes.starts(with: text.utf8.prefix(30)))
    }

    @Test func `an encoded stream that is damaged or cut off is not whole`() throws {
        for bytes in [Array(Encoded.gzip.dropLast(20)), Encoded.gzip.dropLast(8) + [1, 2, 3, 4, 5, 6, 7, 8]] {
            #expect(try !stream(server(Body("Content-Encoding: gzip", bytes)), piece: 65_536).isWhole)
        }
    }

    @Test func `an encoded stream never holds more than the window, however large the decoded body is`() throws {
        let result = try stream(server(Body("Content-Encoding: gzip, gzip", Encoded.bomb)), piece: 65_536)
        #expect(result.bytes.count == 64 << 20 && result.isWhole)
    }
}
