import Testing

@testable import RingbackClient

@Suite struct `A subprocess` {
    @Test func `an exit status and a signal are told apart`() throws {
        #expect(Subprocess.wait(try #require(Subprocess.start(["/bin/sh", "-c", "exit 7"]))) == 7)
        #expect(Subprocess.wait(try #require(Subprocess.start(["/bin/sh", "-c", "kill -9 $$"]))) == 128 + 9)
    }

    @Test func `arguments arrive as they were given`() throws {
        let hostile = "a b'\"$(exit 3);`exit 4`\n"
        let pid = try #require(Subprocess.start(["/bin/sh", "-c", "test \"$1\" = \"$2\"", "sh", hostile, hostile]))
        #expect(Subprocess.wait(pid) == 0)
    }

    @Test func `a program that is not there cannot be started`() {
        #expect(Subprocess.start(["/there/is/no/such/program"]) == nil)
        #expect(Subprocess.start([]) == nil)
        #expect(Subprocess.start(["/bin/true", "a\0b"]) == nil)
    }

    @Test func `a stated environment is the whole environment`() throws {
        let pid = try #require(
            Subprocess.start(["/bin/sh", "-c", "test \"$X-$HOME\" = 1-"], environment: ["X=1"]))
        #expect(Subprocess.wait(pid) == 0)
    }
}
