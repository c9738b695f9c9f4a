import Glibc
import RingbackBase
import TestSupport
import Testing

/// A directory on a file system in memory, as `$XDG_RUNTIME_DIR` is on a desktop.
private final class MemoryDirectory: Sendable {
    let path: String

    init() throws {
        var template = Array("/dev/shm/rb-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw SystemError(call: "mkdtemp", code: errno) }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit { FileTree.remove(path) }
}

extension Stage {
    /// Waits until the daemon has logged a text so many times.
    fileprivate func logged(_ text: String, times: Int = 1) async throws {
        guard let daemon else { throw Late(what: "a daemon") }
        _ = try await daemon.errors.first("“\(text)” in the log \(times) times") { output -> Bool? in
            output.text.split(separator: text, omittingEmptySubsequences: false).count > times ? true : nil
        }
    }

    fileprivate func file(_ path: String) async throws -> JSON? {
        try await api("GET", "/v1/files")["files"]?.array?.first { $0["path"]?.string == path }
    }
}

@Suite struct `A kept file` {
    private static func table(_ path: String, _ rest: String = "") -> String {
        "[[file]]\npath = \"\(path)\"\naccount = \"work\"\n\(rest)\n"
    }

    private static func written(_ path: String) -> String { "The file \(path) has a new token" }

    @Test func `a kept file has the token in each format until the sign-out`() async throws {
        let memory = try MemoryDirectory()
        let names = ["token", "id_token", "header", "netrc", "env", "json"]
        let tables = names.map { name in
            Self.table(
                "\(memory.path)/\(name)", "format = \"\(name)\"\n" + (name == "netrc" ? "host = \"h.test\"" : ""))
        }
        try await Stage.play(Stage.twoAccounts + tables.joined()) { stage in
            #expect(FileTree.names(in: memory.path) == [])
            try await stage.signIn()
            for name in names { try await stage.logged(Self.written("\(memory.path)/\(name)")) }
            let session = try await stage.api("GET", "/v1/accounts/work/session?include=id_token")
            let token = try #require(session["access_token"]?.string)
            func text(_ name: String) -> String? { FileTree.text(of: "\(memory.path)/\(name)") }
            #expect(text("token") == token)
            #expect(text("id_token") == session["id_token"]?.string)
            #expect(text("header") == "Authorization: Bearer \(token)\n")
            #expect(text("netrc") == "machine h.test login oauth2 password \(token)\n")
            #expect(text("env") == "RINGBACK_TOKEN=\(token)\n")
            let json = try JSON(parsing: try #require(text("json")).utf8)
            #expect(json["access_token"]?.string == token && json["expires_at"] == session["expires_at"])
            for name in names { #expect(FileTree.mode(of: "\(memory.path)/\(name)") == 0o600) }
            #expect(FileTree.names(in: memory.path) == names.sorted())
            let list = try await stage.ringback("files", status: 0)
            #expect(list.lines.count == 7, "\(list)")
            // One sign-in, and no refresh for any of the files.
            #expect(try await stage.sandbox.counters().requests("token") == 1)
            try await stage.ringback("logout", "work", status: 0)
            #expect(FileTree.names(in: memory.path) == [])
            #expect(try await stage.file("\(memory.path)/token")?["state"] == "signed_out")
        }
    }

    @Test func `kept files of a session are renewed by one refresh`() async throws {
        let memory = try MemoryDirectory()
        let paths = (1...3).map { "\(memory.path)/\($0)" }
        try await Stage.play(Stage.twoAccounts + paths.map { Self.table($0) }.joined()) { stage in
            try await stage.sandbox.control(["access_token_lifetime": 6])
            try await stage.signIn()
            for path in paths { try await stage.logged(Self.written(path)) }
            let first = try #require(FileTree.text(of: paths[0]))
            try await stage.sandbox.control(["access_token_lifetime": 3600])
            for path in paths { try await stage.logged(Self.written(path), times: 2) }
            let tokens = Set(paths.map { FileTree.text(of: $0) })
            #expect(tokens.count == 1 && tokens.first != first)
            #expect(try await stage.sandbox.counters().tokenRequests("refresh_token") == 1)
        }
    }

    @Test func `a kept file with a scope has a downscoped token`() async throws {
        let memory = try MemoryDirectory()
        let path = "\(memory.path)/t"
        try await Stage.playSignedIn(Stage.twoAccounts + Self.table(path, "scope = \"email\"")) { stage in
            try await stage.logged(Self.written(path))
            let downscoped = try await stage.api("GET", "/v1/accounts/work/session?scope=email")
            #expect(FileTree.text(of: path) == downscoped["access_token"]?.string)
            #expect(try await stage.token() != downscoped["access_token"]?.string)
        }
    }

    @Test func `lock removes a kept file and unlock writes it again`() async throws {
        let memory = try MemoryDirectory()
        let path = "\(memory.path)/t"
        let vault = "[vault]\nkey_source = \"key-file\"\n"
        try await Stage.playSignedIn(vault + Stage.twoAccounts + Self.table(path)) { stage in
            try await stage.logged(Self.written(path))
            try await stage.ringback("lock", status: 0)
            #expect(FileTree.names(in: memory.path) == [])
            #expect(try await stage.file(path)?["state"] == "locked")
            try await stage.ringback("unlock", status: 0)
            try await stage.logged(Self.written(path), times: 2)
            #expect(FileTree.text(of: path) == (try await stage.token()))
        }
    }

    @Test func `a kept file is removed with the daemon, or by the next one after a kill`() async throws {
        let memory = try MemoryDirectory()
        let (path, other) = ("\(memory.path)/t", "\(memory.path)/u")
        try await Stage.playSignedIn(Stage.twoAccounts + Self.table(path) + Self.table(other)) { stage in
            for path in [path, other] { try await stage.logged(Self.written(path)) }
            #expect(try await stage.stopDaemon().status == 0)
            #expect(FileTree.names(in: memory.path) == [])

            try await stage.startDaemon()
            for path in [path, other] { try await stage.logged(Self.written(path)) }
            let token = FileTree.text(of: path)
            stage.daemon?.send(SIGKILL)
            _ = try await stage.daemon?.end()
            #expect(FileTree.text(of: path) == token && FileTree.text(of: other) == token)
            // As if it had been killed before the rename, once in the middle of the writing.
            try stage.write(token ?? "", to: "\(memory.path)/.t.ringback", mode: 0o600)
            try stage.write(String((token ?? "").prefix(9)), to: "\(memory.path)/.u.ringback", mode: 0o600)
            // The table of one is gone, and the session's token is another one.
            try stage.write(configuration: Stage.twoAccounts + Self.table(path))
            try await stage.startDaemon()
            #expect(FileTree.names(in: memory.path) == ["t"])
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            try await stage.logged(Self.written(path))
            #expect(FileTree.text(of: path) == (try await stage.token()))
            try await stage.ringback("logout", "work", status: 0)
            #expect(FileTree.names(in: memory.path) == [])
        }
    }

    @Test func `a file of another program is neither replaced nor removed`() async throws {
        let memory = try MemoryDirectory()
        let (path, link, ours) = ("\(memory.path)/netrc", "\(memory.path)/link", "\(memory.path)/ours")
        let tables = [path, link, ours].map { Self.table($0) }.joined()
        try await Stage.play(Stage.twoAccounts + tables, startsDaemon: false) { stage in
            try stage.write("machine mine", to: path)
            #expect(unsafe symlink("\(memory.path)/target", link) == 0)
            try await stage.startDaemon()
            try await stage.signIn()
            try await stage.logged("\(path) was written by another program")
            try await stage.logged("\(link) is a symbolic link")
            try await stage.logged(Self.written(ours))
            try await stage.ringback("files", status: 1, says: "written by another program")
            let status = try await stage.ringback("status")
            #expect(status.out.contains("ringback files"), "\(status)")
            let doctor = try await stage.ringback("doctor")
            #expect(doctor.out.contains("written by another program"), "\(doctor)")
            // Something replaces ours meanwhile.
            try stage.write("changed", to: ours)
            #expect(try await stage.file(ours)?["state"] == "problem")
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            try await stage.logged("\(ours) was written by another program")
            try await stage.ringback("logout", "work", status: 0)
            #expect(FileTree.text(of: path) == "machine mine" && FileTree.text(of: ours) == "changed")
            #expect(FileTree.target(of: link) == "\(memory.path)/target")
            #expect(FileTree.names(in: memory.path) == ["link", "netrc", "ours"])
        }
    }

    @Test func `a kept file is on a disk only with on_disk = true`() async throws {
        try await Stage.play(
            Stage.twoAccounts + Self.table("{stage}/no") + Self.table("{stage}/yes", "on_disk = true")
        ) { stage in
            try await stage.signIn()
            try await stage.logged(Self.written("\(stage.directory)/yes"))
            try await stage.logged("on_disk = true")
            #expect(FileTree.text(of: "\(stage.directory)/yes") == (try await stage.token()))
            #expect(FileTree.text(of: "\(stage.directory)/no") == nil)
            try await stage.ringback("logout", "work", status: 0)
            #expect(FileTree.text(of: "\(stage.directory)/yes") == nil)
        }
    }

    @Test func `a kept file keeps its token while it cannot be written`() async throws {
        let memory = try MemoryDirectory()
        let (folder, path) = ("\(memory.path)/f", "\(memory.path)/f/t")
        #expect(unsafe mkdir(folder, 0o700) == 0)
        try await Stage.playSignedIn(Stage.twoAccounts + Self.table(path)) { stage in
            try await stage.logged(Self.written(path))
            let token = FileTree.text(of: path)
            // Others may write to the folder: nothing is written there.
            #expect(unsafe chmod(folder, 0o777) == 0)
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            try await stage.logged("is not kept")
            #expect(FileTree.text(of: path) == token)
            #expect(try await stage.file(path)?["state"] == "kept")
            #expect(unsafe chmod(folder, 0o700) == 0)
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            try await stage.logged("is in order again")
            #expect(FileTree.text(of: path) == (try await stage.token()))
        }
    }

    @Test func `a reload adds and removes kept files`() async throws {
        let memory = try MemoryDirectory()
        let path = "\(memory.path)/t"
        try await Stage.playSignedIn { stage in
            try stage.write(configuration: Stage.twoAccounts + Self.table(path))
            try await stage.ringback("reload", status: 0)
            try await stage.logged(Self.written(path))
            try stage.write(configuration: Stage.twoAccounts)
            try await stage.ringback("reload", status: 0)
            #expect(FileTree.names(in: memory.path) == [])
            #expect(try await stage.api("GET", "/v1/files")["files"] == [])
        }
    }

    @Test func `a kept file is removed after its ttl, which a restart does not extend`() async throws {
        let memory = try MemoryDirectory()
        let path = "\(memory.path)/t"
        try await Stage.playSignedIn(Stage.twoAccounts + Self.table(path, "ttl = 1")) { stage in
            try await stage.logged(Self.written(path))
            try await stage.logged("The ttl of \(path) is over")
            #expect(FileTree.names(in: memory.path) == [])
            try await stage.stopDaemon()
            try await stage.startDaemon()
            try await stage.logged("The ttl of \(path) is over")
            #expect(try await stage.file(path)?["state"] == "ended")
            try await stage.signIn()
            try await stage.logged(Self.written(path))
        }
    }

    @Test func `a wrong [[file]] table is rejected`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            for (text, words) in [
                ("[[file]]\naccount = \"work\"\n", "needs path"), ("[[file]]\npath = \"/run/x\"\n", "needs account"),
                (Self.table("/run/x") + Self.table("/run/x"), "same path"), (Self.table("x"), "absolute"),
                (Self.table("/run/../x"), "dot segments"), (Self.table("/run/x", "format = \"netrc\""), "needs host"),
                (Self.table("/run/x", "host = \"h\""), "only for"), (Self.table("/run/x", "ttl = \"soon\""), "ttl"),
                (Self.table("/run/x", "format = \"id_token\"\nscope = \"a\""), "downscoped"),
                ("[[file]]\npath = \"/run/x\"\naccount = \"wrok\"\n", "did you mean work"),
                (Self.table("/run/x", "variable = \"1A\"\nformat = \"env\""), "variable"),
            ] {
                try stage.write(configuration: Stage.twoAccounts + text)
                try await stage.run(
                    "ringbackd", ["--check-config", "--config", stage.configuration], status: 78, says: words)
            }
        }
    }
}
