import Glibc
import RingbackBase
import Testing

@testable import SessionVault

private final class Scratch {
    let path: String

    init() {
        path = "/tmp/ringback-lock-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
        unsafe mkdir(path, 0o700)
    }

    deinit {
        remove(path)
    }

    var state: String { path + "/a/state" }
    var lock: String { state + "/lock" }

    private func remove(_ path: String) {
        for name in Directory.names(in: path) { remove(path + "/" + name) }
        if unsafe rmdir(path) != 0 { unsafe unlink(path) }
    }

    func write(_ bytes: [UInt8]) {
        let file = unsafe open(lock, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        _ = FileBytes.write(bytes, to: file)
        close(file)
    }

    func content() -> [UInt8] {
        let file = unsafe open(lock, O_RDONLY)
        defer { close(file) }
        return FileBytes.read(file, atMost: 4_096)
    }

    func mode(_ path: String) -> UInt32 {
        var status = stat()
        return unsafe lstat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
    }

    /// Makes the lock file look as if it had been written so long ago.
    func age(seconds: Int) {
        var times = [
            timespec(tv_sec: time(nil) - seconds, tv_nsec: 0), timespec(tv_sec: time(nil) - seconds, tv_nsec: 0),
        ]
        unsafe utimensat(AT_FDCWD, lock, &times, 0)
    }

    func renewedAt() -> Int {
        var status = stat()
        return unsafe lstat(lock, &status) == 0 ? status.st_mtim.tv_sec : 0
    }
}

private let ours = StateLease.ours()
private let elsewhere = StateLease(host: "other-host", boot: "0000", pid: 4_711, start: 5)

@Suite struct `The state lock` {
    private let scratch = Scratch()

    private func failure(_ directory: String, as lease: StateLease = ours, kernelLock: Bool = true) -> StateLockError? {
        do throws(StateLockError) {
            _ = try StateLock(directory: directory, lease: lease, usesKernelLock: kernelLock)
            return nil
        } catch {
            return error
        }
    }

    @Test func `makes the directory and its parents for us alone`() throws {
        let lock = try StateLock(directory: scratch.state)
        #expect(scratch.mode(scratch.path + "/a") == 0o700)
        #expect(scratch.mode(scratch.state) == 0o700)
        #expect(scratch.mode(scratch.lock) == 0o600)
        #expect(lock.directory == scratch.state)
    }

    @Test(arguments: [0o755, 0o750, 0o701, 0o777] as [UInt32])
    func `refuses a directory that is open to others and names it and its mode`(mode: UInt32) {
        let path = scratch.path + "/open"
        unsafe mkdir(path, 0o700)
        unsafe chmod(path, mode)
        let error = failure(path)
        #expect(error == .openToOthers(directory: path, mode: mode))
        #expect(scratch.mode(path) == mode)
    }

    @Test(arguments: ["", "/", "//"]) func `refuses a symbolic link`(end: String) {
        let path = scratch.path + "/link"
        unsafe mkdir(scratch.path + "/real", 0o700)
        unsafe symlink(scratch.path + "/real", path)
        #expect(failure(path + end) == .notADirectory(path))
    }

    @Test func `refuses a file in the directory's place`() {
        let path = scratch.path + "/file"
        close(unsafe open(path, O_WRONLY | O_CREAT, 0o600))
        #expect(failure(path) == .notADirectory(path))
        #expect(failure(path + "/state") != nil)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a directory away"))
    func `refuses a directory of somebody else's`() {
        let path = scratch.path + "/foreign"
        unsafe mkdir(path, 0o700)
        unsafe chown(path, 65_534, 65_534)
        #expect(failure(path) == .foreignOwner(path: path, uid: 65_534))
    }

    @Test(arguments: ["link", "pipe", "directory"]) func `refuses what is no plain file in the lock's place`(
        kind: String
    ) {
        unsafe mkdir(scratch.path + "/a", 0o700)
        unsafe mkdir(scratch.state, 0o700)
        switch kind {
        case "link": unsafe symlink("/tmp/ringback-elsewhere", scratch.lock)
        case "pipe": unsafe mkfifo(scratch.lock, 0o600)
        default: unsafe mkdir(scratch.lock, 0o700)
        }
        #expect(failure(scratch.state) == .notAFile(scratch.lock))
    }

    @Test func `a second daemon is refused and told who holds it`() throws {
        let lock = try StateLock(directory: scratch.state)
        let error = failure(scratch.state)
        let holder = StateHolder(host: ours.host, pid: Int(getpid()))
        #expect(error == .held(directory: scratch.state, holder: holder))
        lock.release()
    }

    @Test func `is free again after a release, and after its owner is gone`() throws {
        let lock = try StateLock(directory: scratch.state)
        lock.release()
        lock.release()
        #expect(scratch.content().isEmpty)
        #expect(failure(scratch.state) == nil)
        #expect(failure(scratch.state) == nil)
        #expect(throws: StateLockError.lost(directory: scratch.state, holder: nil)) { try lock.renew() }
    }

    @Test func `SK-09: of many at once one gets it`() async throws {
        let path = scratch.state
        let locks = await withTaskGroup(of: StateLock?.self) { group in
            for _ in 0..<50 { group.addTask { try? StateLock(directory: path) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(locks.compactMap { $0 }.count == 1)
    }

    @Test func `respects a fresh lease of another host`() throws {
        scratch.prepare(elsewhere)
        let holder = StateHolder(host: "other-host", pid: 4_711)
        #expect(failure(scratch.state) == .held(directory: scratch.state, holder: holder))
        #expect(scratch.content() == elsewhere.serialized())
        scratch.age(seconds: 110)
        #expect(failure(scratch.state) != nil)
    }

    @Test(arguments: [130, 100_000, -130]) func `takes a lease that was not renewed`(age: Int) {
        scratch.prepare(elsewhere)
        scratch.age(seconds: age)
        #expect(failure(scratch.state) == nil)
    }

    @Test func `takes what this machine left behind`() {
        var crashed = ours
        crashed.pid = 4_711
        scratch.prepare(crashed)
        #expect(failure(scratch.state) == nil)
        crashed.boot = "before the restart"
        scratch.prepare(crashed)
        #expect(failure(scratch.state) == nil)
    }

    @Test(arguments: ["", "{", "[]", #"{"host":"x\u001b[2J","boot":"b","pid":1,"start":1}"#, #"{"host":"x"}"#])
    func `takes a file that names nobody`(content: String) {
        scratch.prepare(elsewhere)
        scratch.write(Array(content.utf8))
        #expect(failure(scratch.state) == nil)
    }

    @Test func `without a kernel lock the process decides`() {
        var other = ours
        // The parent of all is alive, and not what a lease of ours would name.
        other.pid = 1
        other.start = StateLease.startTime(of: 1) ?? -1
        scratch.prepare(other)
        #expect(failure(scratch.state, kernelLock: false) != nil)
        other.start += 1
        scratch.prepare(other)
        #expect(failure(scratch.state, kernelLock: false) == nil)
    }

    @Test func `without a kernel lock another container's lease counts while it is fresh`() {
        var other = ours
        other.host = "container"
        scratch.prepare(other)
        #expect(failure(scratch.state, kernelLock: false) != nil)
        #expect(failure(scratch.state, kernelLock: true) == nil)
        scratch.prepare(other)
        scratch.age(seconds: 200)
        #expect(failure(scratch.state, kernelLock: false) == nil)
    }

    @Test func `renewing makes the lease young again`() throws {
        let lock = try StateLock(directory: scratch.state)
        scratch.age(seconds: 1_000)
        try lock.renew()
        #expect(time(nil) - scratch.renewedAt() < 100)
        #expect(scratch.content() == ours.serialized())
    }

    @Test func `a lease that another host took is lost, and left alone`() throws {
        let lock = try StateLock(directory: scratch.state)
        scratch.write(elsewhere.serialized())
        let holder = StateHolder(host: "other-host", pid: 4_711)
        #expect(throws: StateLockError.lost(directory: scratch.state, holder: holder)) { try lock.renew() }
        lock.release()
        #expect(scratch.content() == elsewhere.serialized())
    }

    @Test func `a lock file that was removed or replaced is lost`() throws {
        let lock = try StateLock(directory: scratch.state)
        unsafe unlink(scratch.lock)
        #expect(throws: StateLockError.lost(directory: scratch.state, holder: nil)) { try lock.renew() }
        scratch.write(ours.serialized())
        #expect(throws: StateLockError.self) { try lock.renew() }
    }

    @Test(arguments: ["", "laptop", "büro", "two words", "50%", String(repeating: "ü", count: 32)])
    func `a lease is renewed whatever the host's name is`(name: String) throws {
        var lease = ours
        lease.host = StateLease.name(ofHost: Array(name.utf8), boot: ours.boot)
        let lock = try StateLock(directory: scratch.state, lease: lease, usesKernelLock: true)
        try lock.renew()
        lock.release()
    }

    @Test func `hosts with different names, or without one, are not taken for each other`() {
        func name(_ bytes: [UInt8], _ boot: String = "b-1") -> String { StateLease.name(ofHost: bytes, boot: boot) }
        #expect(name(Array("laptop.example".utf8)) == "laptop.example")
        #expect(name([0xFC]) == "%FC" && name([0xFE]) == "%FE" && name([0x61, 0x20, 0x25]) == "a%20%25")
        #expect(name([]) == "unnamed-b-1" && name([], "b-2") == "unnamed-b-2")
    }

    @Test func `a lease says who, and is read as it was written`() {
        #expect(StateLease(parsing: ours.serialized()) == ours)
        #expect(ours.serialized().count == StateLease.size)
        #expect(ours.pid == Int(getpid()))
        #expect(ours.isAlive)
        #expect(!ours.boot.isEmpty)
    }
}

extension Scratch {
    fileprivate func prepare(_ lease: StateLease) {
        unsafe mkdir(path + "/a", 0o700)
        unsafe mkdir(state, 0o700)
        write(lease.serialized())
    }
}
