import Glibc
import Testing

@testable import CurlTransport

@Suite struct `A descriptor beside the transfers` {
    @Test(arguments: [true, false])
    func `the end of a connection counts as input, also where none is wanted`(wantsInput: Bool) throws {
        let streams = try #require(CurlStreams(version: "0.0.0-test"))
        var ends: [Int32] = [-1, -1]
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { close(ends[0]) }
        var watched = [CurlStreams.Watched(ends[0], input: wantsInput)]
        streams.wait(&watched, atMost: 0)
        #expect(!watched[0].hasInput)
        close(ends[1])
        streams.wait(&watched, atMost: 30_000)
        #expect(watched[0].hasInput)
    }

    @Test func `a client that only ends its direction is no input where none is wanted`() throws {
        let streams = try #require(CurlStreams(version: "0.0.0-test"))
        var ends: [Int32] = [-1, -1]
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        shutdown(ends[1], Int32(SHUT_WR))
        var watched = [CurlStreams.Watched(ends[0], input: false)]
        streams.wait(&watched, atMost: 0)
        #expect(!watched[0].hasInput)
        watched[0].wantsInput = true
        streams.wait(&watched, atMost: 0)
        #expect(watched[0].hasInput)
    }
}
