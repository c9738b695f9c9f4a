import Configuration
import Glibc
import RingbackBase
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct `A credential from a descriptor` {
    private struct Failure: Error {}

    private func pair() throws -> (read: Int32, write: Int32) {
        var ends: [Int32] = [-1, -1]
        // Closed in other programs that tests start meanwhile.
        guard unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0, &ends) == 0 else {
            throw Failure()
        }
        return (ends[0], ends[1])
    }

    private func write(_ text: String, to descriptor: Int32) {
        let bytes = Array(text.utf8)
        #expect(unsafe Glibc.write(descriptor, bytes, bytes.count) == bytes.count)
    }

    @Test(arguments: [("one", "one"), ("one\n", "one"), ("one\n\n", "one"), ("one\r\n", "one"), ("", "")])
    func `is read to its end, without the line ends after it`(given: String, read: String) throws {
        let ends = try pair()
        defer { close(ends.read) }
        write(given, to: ends.write)
        close(ends.write)
        #expect(try CredentialDescriptor.read(ends.read).revealed() == read)
    }

    @Test func `has a limit, and its writer a time`() throws {
        let ends = try pair()
        write("one", to: ends.write)
        #expect(throws: CredentialDescriptor.Failure.notClosed) { try CredentialDescriptor.read(ends.read, timeout: 1) }
        close(ends.write)
        close(ends.read)
        #expect(throws: CredentialDescriptor.Failure.notOpen) { try CredentialDescriptor.read(-1) }
        let zero = unsafe open("/dev/zero", O_RDONLY | O_CLOEXEC)
        defer { close(zero) }
        #expect(throws: CredentialDescriptor.Failure.tooLong) { try CredentialDescriptor.read(zero) }
        let directory = unsafe open("/", O_RDONLY | O_CLOEXEC)
        defer { close(directory) }
        #expect(throws: CredentialDescriptor.Failure.unreadable) { try CredentialDescriptor.read(directory) }
    }

    /// Where the signal's handler writes.
    private static let bell = Atomic<Int32>(-1)

    private struct Reading {
        var wasWaiting = false
        var wasInterrupted = false
        var read: Result<String, CredentialDescriptor.Failure>?
    }

    @Test func `a signal while its writer is slow does not end the reading`() async throws {
        let reading = try await onThread { try interruptedReading() }
        #expect(reading.wasWaiting && reading.wasInterrupted)
        #expect(try reading.read?.get() == "late")
    }

    private func interruptedReading() throws -> Reading {
        let (ends, bell) = (try pair(), try pair())
        Self.bell.store(bell.write, ordering: .sequentiallyConsistent)
        var (action, former) = (sigaction(), sigaction())
        unsafe action.__sigaction_handler.sa_handler = { _ in
            var byte: UInt8 = 1
            _ = unsafe Glibc.write(`A credential from a descriptor`.bell.load(ordering: .relaxed), &byte, 1)
        }
        unsafe sigaction(SIGURG, &action, &former)
        defer {
            unsafe sigaction(SIGURG, &former, nil)
            for descriptor in [ends.read, bell.read, bell.write] { close(descriptor) }
        }
        let started = Mutex<(thread: pthread_t, place: String)?>(nil)
        let result = Mutex<Result<String, CredentialDescriptor.Failure>?>(nil)
        let reader = Thread {
            CurrentThread.unblock(SIGURG)
            started.withLock { $0 = (pthread_self(), CurrentThread.place()) }
            let read = Result { () throws(CredentialDescriptor.Failure) in
                try CredentialDescriptor.read(ends.read).revealed()
            }
            result.withLock { $0 = read }
        }
        var reading = Reading()
        for _ in 0..<1_000_000 where !reading.wasWaiting {
            reading.wasWaiting = started.withLock { $0 }.map { isAsleep($0.place) } ?? false
            sched_yield()
        }
        if let thread = started.withLock({ $0?.thread }) { pthread_kill(thread, SIGURG) }
        var entry = pollfd(fd: bell.read, events: Int16(POLLIN), revents: 0)
        reading.wasInterrupted = unsafe poll(&entry, 1, 5_000) == 1
        let bytes = Array("late\n".utf8)
        _ = unsafe Glibc.write(ends.write, bytes, bytes.count)
        close(ends.write)
        reader.join()
        reading.read = result.withLock { $0 }
        return reading
    }

    /// True if a thread of this process sleeps in the kernel.
    private func isAsleep(_ place: String) -> Bool {
        let descriptor = unsafe open("/proc/\(place)/stat", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 512)
        let count = unsafe read(descriptor, &buffer, buffer.count)
        let text = String(decoding: buffer[..<max(0, count)], as: UTF8.self)
        return text.split(separator: ")").last?.hasPrefix(" S") == true
    }
}

private enum CurrentThread {
    /// Threads of the shared pool block all signals, and the threads that they start do, too.
    static func unblock(_ signal: Int32) {
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe sigaddset(&signals, signal)
        unsafe pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }

    /// Below `/proc`: `PID/task/TID`.
    static func place() -> String {
        var buffer = [CChar](repeating: 0, count: 64)
        let count = unsafe readlink("/proc/thread-self", &buffer, buffer.count)
        return String(decoding: buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
