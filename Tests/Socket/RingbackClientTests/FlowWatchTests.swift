import Glibc
import RingbackBase
import Synchronization
import Testing

@testable import RingbackClient

@Suite(.timeLimit(.minutes(5))) struct `The watch over a flow` {
    /// True once the descriptor is readable, within a bound.
    private func isReadable(_ descriptor: Int32, milliseconds: Int32 = 60_000) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&entry, 1, milliseconds) > 0
    }

    @Test func `becomes readable when the flow has ended`() throws {
        let daemon = try FakeDaemon { _ in .json(200, #"{"id":"f","account":"a","status":"completed"}"#) }
        let watch = try FlowWatch(BrokerCalls(socket: daemon.path, application: "test"), flow: "f")
        #expect(isReadable(watch.descriptor))
        #expect(try watch.outcome?.0.status == .completed)
    }

    @Test func `has nothing while it is pending, and can be stopped`() throws {
        let daemon = try FakeDaemon { _ in .hold("") }
        let watch = try FlowWatch(BrokerCalls(socket: daemon.path, application: "test"), flow: "f")
        #expect(try !isReadable(watch.descriptor, milliseconds: 0) && watch.outcome == nil)
        watch.stop()
        #expect(isReadable(watch.descriptor))
        #expect(throws: RingbackError.self) { try watch.outcome }
    }

    @Test func `gives up at the caller's own bound`() throws {
        let daemon = try FakeDaemon { _ in .json(200, #"{"id":"f","account":"a","status":"pending"}"#) }
        let watch = try FlowWatch(BrokerCalls(socket: daemon.path, application: "test"), flow: "f", until: .now)
        #expect(isReadable(watch.descriptor))
        #expect(try watch.outcome?.0.status == .pending)
    }

    @Test func `without a daemon says so`() throws {
        let watch = try FlowWatch(BrokerCalls(socket: "/nowhere/s", application: "test"), flow: "f")
        #expect(isReadable(watch.descriptor))
        #expect(throws: RingbackError.self) { try watch.outcome }
    }
}
