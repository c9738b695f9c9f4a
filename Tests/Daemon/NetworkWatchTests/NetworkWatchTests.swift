import CLinux
import Glibc
import Testing

@testable import NetworkWatch

/// That a returning network is heard is shown by the house tests, in a network namespace of their own.
@Suite struct `The network's news` {
    @Test func `cost nothing while nothing happens`() throws {
        let descriptor = clinux_open_network_news()
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        #expect(clinux_read_network_news(descriptor) == 0)
        #expect(NetworkWatch(onReturn: {}) != nil)
    }
}
