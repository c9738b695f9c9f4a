import Glibc
import Testing

@testable import RingbackClient

@Suite struct `Socket place` {
    @Test(
        arguments: [
            ("/s", ["RINGBACK_SOCK": "/e"], "/s"), (nil, ["RINGBACK_SOCK": "/e", "XDG_RUNTIME_DIR": "/run"], "/e"),
            (nil, ["XDG_RUNTIME_DIR": "/run/user/7"], "/run/user/7/ringback/ringback.sock"),
        ] as [(String?, [String: String], String)])
    func `what is named goes before RINGBACK_SOCK, and that before XDG_RUNTIME_DIR`(
        stated: String?, environment: [String: String], expected: String
    ) throws {
        #expect(try SocketPlace.path(stated: stated, environment: { environment[$0] }) == expected)
    }

    @Test func `a machine without systemd's logins is told of none`() {
        #expect(SocketPlace.advice(hasSystemd: true).contains("/run/user/"))
        #expect(!SocketPlace.advice(hasSystemd: false).contains("/run/user/"))
        #expect(!SocketPlace.advice(hasSystemd: false).contains("login"))
    }

    @Test(arguments: [[:], ["XDG_RUNTIME_DIR": ""], ["XDG_RUNTIME_DIR": "tmp"], ["RINGBACK_SOCK": ""]])
    func `without a place the error names XDG_RUNTIME_DIR`(environment: [String: String]) {
        let failure = #expect(throws: RingbackError.self) {
            try SocketPlace.path(stated: nil, environment: { environment[$0] }, logins: "/nowhere")
        }
        #expect(failure?.kind == .noDaemon)
        #expect(failure?.detail.contains("XDG_RUNTIME_DIR") == true)
    }

    /// A directory as systemd's logins have, with a daemon's socket for this user.
    private func play(_ test: (_ logins: String, _ own: String) throws -> Void) throws {
        var template = Array("/tmp/rb-place-XXXXXX".utf8CString)
        let isMade = unsafe mkdtemp(&template) != nil
        try #require(isMade)
        let logins = String(decoding: template.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let own = "\(logins)/\(getuid())"
        for path in [own, own + "/ringback"] { #expect(unsafe mkdir(path, 0o700) == 0) }
        let socket = own + "/ringback/ringback.sock"
        #expect(unsafe mknod(socket, S_IFSOCK | 0o600, 0) == 0)
        defer {
            unsafe unlink(socket)
            for path in [own + "/ringback", own, logins] { unsafe rmdir(path) }
        }
        try test(logins, own)
    }

    private func path(_ runtime: String?, _ logins: String) -> String? {
        try? SocketPlace.path(
            stated: nil, environment: { $0 == "XDG_RUNTIME_DIR" ? runtime : nil }, logins: logins)
    }

    @Test func `without the variable, and in a Snap, the socket of the login is found`() throws {
        try play { logins, own in
            let socket = own + "/ringback/ringback.sock"
            #expect(path(nil, logins) == socket)
            #expect(path("", logins) == socket)
            #expect(path(own + "/snap.editor", logins) == socket)
            // What was chosen stays.
            #expect(path("/somewhere", logins) == "/somewhere/ringback/ringback.sock")
            #expect(path(logins + "/1", logins) == logins + "/1/ringback/ringback.sock")
        }
    }

    @Test func `a socket that somebody else could have made is not found`() throws {
        try play { logins, own in
            for directory in [own, own + "/ringback"] {
                #expect(unsafe chmod(directory, 0o777) == 0)
                #expect(path(nil, logins) == nil)
                #expect(path(own + "/snap.editor", logins) == own + "/snap.editor/ringback/ringback.sock")
                #expect(unsafe chmod(directory, 0o700) == 0)
            }
            let socket = own + "/ringback/ringback.sock"
            #expect(unsafe rename(socket, own + "/elsewhere") == 0)
            #expect(unsafe symlink(own + "/elsewhere", socket) == 0)
            #expect(path(nil, logins) == nil)
            #expect(unsafe rename(own + "/elsewhere", socket) == 0)
        }
    }
}

@Suite struct `The disk of the state` {
    @Test(arguments: [(UInt32(0x6969), "NFS"), (0xFF53_4D42, "CIFS"), (0x00C3_6400, "Ceph")])
    func `of other machines too is told of, with a way out that lasts`(kind: UInt32, name: String) throws {
        let warning = try #require(StateDisk.warning("/home/a/.local/state/ringback", kind: kind))
        #expect(warning.hasPrefix("/home/a/.local/state/ringback is on \(name):"))
        #expect(warning.contains("Environment=RINGBACK_STATE=") && warning.contains("not below /tmp"))
    }

    @Test(arguments: [UInt32(0xEF53), 0x9123_683E, 0x0102_1994, 0])
    func `of this machine alone is well`(kind: UInt32) {
        #expect(StateDisk.warning("/home/a", kind: kind) == nil)
    }
}
