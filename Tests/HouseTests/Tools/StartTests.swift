import CLinux
import Glibc
import Testing

@Suite struct `A program that is started apart` {
    private func start(_ path: String, output: Int32) -> Int32 {
        var words = unsafe [strdup(path), nil]
        var lines: [UnsafeMutablePointer<CChar>?] = unsafe [nil]
        defer { unsafe words.forEach { unsafe free($0) } }
        return unsafe clinux_start_apart(path, &words, &lines, nil, output, nil, 0)
    }

    @Test func `has started, or the error says why not`() {
        #expect(start("/bin/sh", output: -1) == 0)
        #expect(start("/no/such/program", output: -1) == ENOENT)
        #expect(start("/bin/sh", output: .max) == EBADF)
    }
}
