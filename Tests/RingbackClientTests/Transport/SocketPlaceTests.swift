import Foundation
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
        #expect(try SocketPlace.path(stated: stated, environment: { environment[$0] }, ofLogin: "/nowhere") == expected)
    }

    @Test(arguments: [nil, "", "snap.notes"])
    func `without a socket at XDG_RUNTIME_DIR the one of the login is used, if the directory is the user's own`(
        folder: String?
    ) throws {
        let login = FileManager.default.temporaryDirectory.appending(path: "login-\(UUID())").path()
        defer { try? FileManager.default.removeItem(atPath: login) }
        let socket = login + "/ringback/ringback.sock"
        try FileManager.default.createDirectory(
            atPath: login + "/ringback", withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let variable = folder.map { $0.isEmpty ? "" : "\(login)/\($0)" }
        func found(_ variable: String?) -> String? {
            try? SocketPlace.path(
                stated: nil, environment: { $0 == "XDG_RUNTIME_DIR" ? variable : nil }, ofLogin: login)
        }
        let named = folder == "snap.notes" ? "\(login)/snap.notes/ringback/ringback.sock" : nil
        #expect(found(variable) == named)
        #expect(FileManager.default.createFile(atPath: socket, contents: nil))
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: login)
        #expect(found(variable) == named)
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: login)
        #expect(found(variable) == socket)
        // Whoever names a directory elsewhere wants the daemon there.
        #expect(found("/elsewhere") == "/elsewhere/ringback/ringback.sock")
    }

    @Test func `a machine without systemd's logins is told of none`() {
        #expect(SocketPlace.advice(hasSystemd: true).contains("/run/user/"))
        #expect(!SocketPlace.advice(hasSystemd: false).contains("/run/user/"))
        #expect(!SocketPlace.advice(hasSystemd: false).contains("login"))
    }

    @Test(arguments: [[:], ["XDG_RUNTIME_DIR": ""], ["XDG_RUNTIME_DIR": "tmp"], ["RINGBACK_SOCK": ""]])
    func `without a place the error names XDG_RUNTIME_DIR`(environment: [String: String]) {
        do throws(RingbackError) {
            _ = try SocketPlace.path(stated: nil, environment: { environment[$0] }, ofLogin: "/nowhere")
            Issue.record("no error")
        } catch {
            #expect(error.kind == .noDaemon)
            #expect(error.detail.contains("XDG_RUNTIME_DIR"))
        }
    }
}
