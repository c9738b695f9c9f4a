import Glibc
import Testing

@testable import Records

@Suite struct `What is known of a process` {
    @Test func `is its program and its start`() throws {
        #expect(ProcessFacts.executable(of: getpid())?.hasPrefix("/") == true)
        let start = try #require(ProcessFacts.startTime(of: getpid()))
        #expect(start > 0)
        #expect(ProcessFacts.startTime(of: getpid()) == start)
        #expect(ProcessFacts.sessionStart(of: getpid()) == ProcessFacts.startTime(of: getsid(0)))
    }

    @Test(arguments: [0, -1, Int32.max]) func `is nothing where there is none`(pid: Int32) {
        #expect(ProcessFacts.executable(of: pid) == nil)
        #expect(ProcessFacts.unit(of: pid) == nil)
        #expect(ProcessFacts.startTime(of: pid) == nil)
    }
}
