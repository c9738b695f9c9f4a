import Glibc
import RingbackBase
import TestSupport
import Testing

@testable import PostgresClient

@Suite struct `A file with a password` {
    private func read(_ content: String, mode: mode_t = 0o600) throws -> Secret? {
        var template = Array("/tmp/rb-password-XXXXXX".utf8CString)
        let descriptor = unsafe mkstemp(&template)
        guard descriptor >= 0 else { throw SystemError(call: "mkstemp", code: errno) }
        let path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        defer {
            unsafe unlink(path)
            close(descriptor)
        }
        _ = unsafe write(descriptor, content, content.utf8.count)
        fchmod(descriptor, mode)
        return PasswordLine.read(path)
    }

    @Test func `its first line is the password`() throws {
        #expect(try read("of ada\nmore\n") == Secret("of ada"))
        #expect(try read("of ada") == Secret("of ada"))
        #expect(try read("of ada\r\n") == Secret("of ada"))
        #expect(try read("x", mode: 0o640) == Secret("x"))
    }

    @Test func `what is empty, too long, or open to others is none`() throws {
        #expect(try read("") == nil)
        #expect(try read("\nx") == nil)
        #expect(try read(String(repeating: "a", count: 1_025)) == nil)
        #expect(try read("a\u{0}b") == nil)
        #expect(try read("x", mode: 0o604) == nil)
        #expect(try read("x", mode: 0o620) == nil)
        #expect(PasswordLine.read("/dev/null") == nil)
        #expect(PasswordLine.read("/none/none") == nil)
    }
}
