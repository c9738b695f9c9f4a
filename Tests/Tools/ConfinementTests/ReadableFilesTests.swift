import CLinux
import Glibc
import Synchronization
import TestSupport
import Testing

@Suite struct `A thread that may read some files` {
    @Test func `a file by its own path is read, and no other one of its folder`() {
        let found = Mutex<(code: Int32, failures: [String: Int32])>((0, [:]))
        // The limit lasts as long as the thread.
        Thread {
            let code = unsafe clinux_confine_files("/dev/null:/etc", nil)
            var failures: [String: Int32] = [:]
            for path in ["/dev/null", "/dev/zero", "/dev", "/etc", "/etc/passwd", "/usr"] {
                let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
                failures[path] = file < 0 ? errno : 0
                if file >= 0 { close(file) }
            }
            found.withLock { $0 = (code, failures) }
        }.join()
        let (code, failures) = found.withLock { $0 }
        // The kernel may have no Landlock.
        guard code != ENOSYS, code != EOPNOTSUPP else { return }
        #expect(code == 0)
        let expected = [
            "/dev/null": 0, "/dev/zero": EACCES, "/dev": EACCES, "/etc": 0, "/etc/passwd": 0, "/usr": EACCES,
        ]
        #expect(failures == expected)
    }
}
