import Glibc
import RingbackBase
import Testing

@testable import Configuration

@Suite struct `Trust in files` {
    private let trust = FileTrust(user: Folder.user)

    private func failure(_ path: String, isSecret: Bool = false) -> FileTrust.Failure? {
        do throws(FileTrust.Failure) {
            _ = try trust.read(path, isSecret: isSecret, maxSize: 1_000)
            return nil
        } catch {
            return error
        }
    }

    private func refusal(_ path: String, isSecret: Bool = false) -> String? {
        switch failure(path, isSecret: isSecret) {
        case .refused(let reason, _): reason
        case .missing: "missing"
        case nil: nil
        }
    }

    @Test func `is given to one's own files that others may read`() throws {
        let folder = try Folder()
        let content = try trust.read(try folder.write("x", to: "f", mode: 0o644), maxSize: 1)
        #expect(content.bytes == [0x78])
        #expect(!content.isPrivate)
        #expect(try trust.read(try folder.write("x", to: "g", mode: 0o600), maxSize: 1).isPrivate)
    }

    @Test(arguments: [0o620, 0o602, 0o666] as [mode_t])
    func `is refused to files that others may write`(mode: mode_t) throws {
        let folder = try Folder()
        let file = try folder.write("x", to: "it's mine", mode: mode)
        #expect(failure(file) == .refused("can be written by others", UnsafePath(file, .writableByOthers)))
    }

    @Test func `is refused to directories that others may write`() throws {
        let folder = try Folder()
        try folder.makeDirectory("open", mode: 0o777)
        let file = try folder.write("x", to: "open/f")
        let directory = "\(folder.path)/open"
        let reason = "is in the directory \(directory), which can be written by others"
        #expect(failure(file) == .refused(reason, UnsafePath(directory, .writableByOthers)))
    }

    @Test func `a file in a directory for all users is to be moved, and the directory stays as it is`() throws {
        let folder = try Folder()
        try folder.makeDirectory("tmp", mode: 0o777)
        #expect(unsafe chmod("\(folder.path)/tmp", 0o1777) == 0)
        let file = try folder.write("x", to: "tmp/f")
        let reason = "is in the directory \(folder.path)/tmp, which can be written by others: move the file to a "
        #expect(failure(file) == .refused(reason + "directory that only you can write"))
    }

    @Test(.enabled(if: Folder.canGiveAway)) func `is refused to other people's files and directories`() throws {
        let folder = try Folder()
        let file = try folder.write("x", to: "f")
        try folder.own(file, by: Folder.stranger)
        let reason = "belongs to uid 1001, neither to you (uid 1000) nor to root"
        #expect(failure(file) == .refused(reason, UnsafePath(file, .foreignOwner)))
        try folder.makeDirectory("theirs")
        let mine = try folder.write("x", to: "theirs/f")
        try folder.own("\(folder.path)/theirs", by: Folder.stranger)
        #expect(refusal(mine)?.hasPrefix("is in the directory") == true)
    }

    @Test(.enabled(if: Folder.canGiveAway)) func `is given to root's files, secrets that others read included`() throws
    {
        let folder = try Folder()
        let file = try folder.write("x", to: "f", mode: 0o644)
        try folder.own(file, by: 0)
        #expect(refusal(file, isSecret: true) == nil)
    }

    @Test(arguments: [0o640, 0o604] as [mode_t]) func `is refused to secrets that others may read`(mode: mode_t) throws
    {
        let folder = try Folder()
        let file = try folder.write("x", to: "f", mode: mode)
        #expect(refusal(file) == nil)
        let expected = FileTrust.Failure.refused(
            "holds a secret and can be read by others", UnsafePath(file, .readableByOthers))
        #expect(failure(file, isSecret: true) == expected)
    }

    @Test func `follows a link and judges what it leads to`() throws {
        let folder = try Folder()
        try folder.makeDirectory("dotfiles")
        try folder.makeDirectory("open", mode: 0o777)
        let good = try folder.write("x", to: "dotfiles/f")
        let open = try folder.write("x", to: "open/f")
        let writable = try folder.write("x", to: "dotfiles/g", mode: 0o666)
        for (index, target) in [good, open, writable, "/nonexistent"].enumerated() {
            #expect(unsafe symlink(target, "\(folder.path)/link\(index)") == 0)
        }
        #expect(refusal("\(folder.path)/link0") == nil)
        #expect(refusal("\(folder.path)/link1")?.hasPrefix("is in the directory \(folder.path)/open") == true)
        #expect(refusal("\(folder.path)/link2")?.hasPrefix("can be written by others") == true)
        #expect(refusal("\(folder.path)/link3") == "is a link to a file that does not exist")
    }

    @Test func `is refused to what is no file, without waiting`() throws {
        let folder = try Folder()
        try folder.makeDirectory("d")
        #expect(unsafe mkfifo("\(folder.path)/pipe", 0o600) == 0)
        try folder.own("\(folder.path)/pipe")
        #expect(refusal("\(folder.path)/d") == "is not a regular file")
        #expect(refusal("\(folder.path)/pipe") == "is not a regular file")
    }

    @Test func `ends at the size that is allowed`() throws {
        let folder = try Folder()
        #expect(refusal(try folder.write([UInt8](repeating: 0x20, count: 1_000), to: "f")) == nil)
        let long = try folder.write([UInt8](repeating: 0x20, count: 1_001), to: "f")
        #expect(refusal(long) == "is longer than 1000 bytes")
    }

    @Test func `covers drop-ins, each for itself`() throws {
        let folder = try Folder()
        try folder.makeDirectory("accounts.d")
        try folder.write(
            "[accounts.a]\nprovider = \"google\"\nclient_id = \"c\"\n", to: "accounts.d/a.toml", mode: 0o666)
        try folder.write("x = 1\n", to: "accounts.d/b.toml")
        let errors = try #require(throws: ConfigurationErrors.self) {
            try folder.load(isExplicit: false)
        }
        #expect(errors.errors.map(\.line) == [nil, 1])
        let file = "\(folder.path)/accounts.d/a.toml"
        #expect(errors.errors[0].cause == .unsafe(UnsafePath(file, .writableByOthers)))
    }

    @Test func `covers secret files, at load and whenever one is read`() throws {
        let folder = try Folder()
        try folder.write("hush\n", to: "secret")
        try folder.write("[accounts.a]\nprovider = \"google\"\nclient_id = \"c\"\nclient_secret_file = \"~/secret\"\n")
        let account = try #require(try folder.load()["a"])
        for end in ["", "\n", "\r\n", "\n\n", "\r\n\r\n", "\r"] {
            try folder.write("\u{FEFF}hush \(end)", to: "secret")
            #expect(try account.readClientSecret(user: Folder.user)?.revealed() == "hush ")
        }
        for (content, byte) in [
            ("hu\nsh\n", "byte 2 is 0x0A"), ("hush\r\r\n\tx", "byte 4 is 0x0D"), ("a\u{7F}", "byte 1 is 0x7F"),
        ] {
            try folder.write(content, to: "secret")
            let error = try #require(throws: ConfigurationError.self) {
                try account.readClientSecret(user: Folder.user)
            }
            #expect(error.key == "accounts.a.client_secret_file" && error.message.contains(byte))
            #expect(error.message.contains("\(folder.path)/secret") && !error.message.contains("hush"))
            #expect(throws: ConfigurationErrors.self) { try folder.load() }
        }
        try folder.write("\r\n", to: "secret")
        #expect(throws: ConfigurationErrors.self) { try folder.load() }
        try folder.write("other", to: "secret")
        #expect(try account.readClientSecret(user: Folder.user)?.revealed() == "other")
        try folder.write("other", to: "secret", mode: 0o644)
        let error = try #require(throws: ConfigurationError.self) { try account.readClientSecret(user: Folder.user) }
        #expect(error.key == "accounts.a.client_secret_file")
        #expect(error.cause == .unsafe(UnsafePath("\(folder.path)/secret", .readableByOthers)))
        #expect(throws: ConfigurationErrors.self) { try folder.load() }
    }
}
