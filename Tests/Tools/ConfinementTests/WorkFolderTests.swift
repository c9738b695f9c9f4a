import Glibc
import Testing

@testable import Confinement

/// A directory with a home in it, which goes when the test ends.
final class Place {
    let path: String

    init() throws {
        var template = Array("/tmp/ringback-confinement.XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw Trouble() }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        for folder in ["home", "home/.config", "home/.config/ringback", "home/work"] { try folders(folder) }
    }

    deinit { remove(path) }

    struct Trouble: Error {}

    var home: String { path + "/home" }
    var work: String { home + "/work" }

    func folders(_ name: String) throws {
        guard unsafe mkdir("\(path)/\(name)", 0o700) == 0 || errno == EEXIST else { throw Trouble() }
    }

    func write(_ text: String, to name: String, mode: mode_t = 0o600) throws {
        var folder = ""
        for part in name.split(separator: "/").dropLast() {
            folder += (folder.isEmpty ? "" : "/") + part
            try folders(folder)
        }
        let file = unsafe open("\(path)/\(name)", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
        guard file >= 0 else { throw Trouble() }
        defer { close(file) }
        let bytes = Array(text.utf8)
        guard unsafe Glibc.write(file, bytes, bytes.count) == bytes.count else { throw Trouble() }
    }

    func link(_ target: String, at name: String) throws {
        guard unsafe symlink(target, "\(path)/\(name)") == 0 else { throw Trouble() }
    }

    /// What git makes of a repository, as far as it matters here.
    func repository(_ name: String) throws {
        for (file, text) in [("HEAD", "ref: refs/heads/main\n"), ("config", "[core]\n"), ("hooks/sample", "")] {
            try write(text, to: "\(name)/\(file)")
        }
        try folders("\(name)/objects")
    }

    func folder(_ name: String = "home/work") throws -> WorkFolder {
        try WorkFolder("\(path)/\(name)", home: home, kept: [home + "/.config/ringback"])
    }

    private func remove(_ path: String) {
        if Path(path).kind == .folder {
            for name in Path(path).names { remove("\(path)/\(name)") }
            _ = unsafe rmdir(path)
        } else {
            _ = unsafe unlink(path)
        }
    }
}

@Suite struct `A work folder` {
    @Test func `is refused where it would have the home directory, Ringback's files or the system in it`() throws {
        let place = try Place()
        try place.link(place.home, at: "home/work/up")
        #expect(throws: Wall.Failure.self) { try WorkFolder("/tmp", home: place.home, kept: []) }
        for name in ["home", ".", "home/.config", "home/.config/ringback", "home/work/up", "home/missing"] {
            #expect(throws: Wall.Failure.self, "\(name)") { try place.folder(name) }
        }
        // Whoever changes the link has another configuration read.
        try place.link("../.config/ringback", at: "home/work/link")
        try place.link("work/link", at: "home/chained")
        #expect(throws: Wall.Failure.self) {
            try WorkFolder(place.work, home: place.home, kept: [place.home + "/chained/config.toml"])
        }
        for system in ["/", "/etc", "/usr/share", "/proc/self"] {
            #expect(throws: Wall.Failure.self, "\(system)") { try WorkFolder(system, home: place.home, kept: []) }
        }
        #expect(try place.folder().path == Path(place.work).real)
    }

    @Test func `keeps what git and editors run outside read-only, and git's folder in its place`() throws {
        let place = try Place()
        try place.repository("home/work/.git")
        try place.repository("home/work/.git/modules/lib/deep")
        try place.write("../..", to: "home/work/.git/worktrees/side/commondir")
        try place.write("", to: "home/work/.envrc")
        try place.write("all:\n", to: "home/work/Makefile")
        let folder = try place.folder()
        let git = folder.path + "/.git"
        #expect(folder.fixed.map(\.path) == [git])
        #expect(
            folder.protected.map(\.path) == [
                git + "/hooks", git + "/config", git + "/worktrees/side/commondir", git + "/modules/lib/deep/hooks",
                git + "/modules/lib/deep/config",
                folder.path + "/.envrc",
            ])
    }

    @Test func `of a further work tree has git's own folders, if these name it in turn`() throws {
        let place = try Place()
        try place.repository("home/main/.git")
        let own = "home/main/.git/worktrees/work"
        try place.write("ref: refs/heads/side\n", to: own + "/HEAD")
        try place.write("../..\n", to: own + "/commondir")
        try place.write("gitdir: \(place.path)/\(own)\n", to: "home/work/.git")
        // A `.git` file of somebody else that names this repository.
        #expect(try place.folder().fixed.isEmpty)
        try place.write("\(place.work)/.git\n", to: own + "/gitdir")
        let folder = try place.folder()
        let common = try #require(Path(place.home + "/main/.git").real)
        #expect(folder.fixed.map(\.path) == [common + "/worktrees/work", common])
        let tree = common + "/worktrees/work"
        #expect(
            folder.protected.map(\.path) == [
                folder.path + "/.git", tree + "/commondir", tree + "/gitdir", common + "/hooks", common + "/config",
                tree + "/commondir", tree + "/gitdir",
            ])
    }

    @Test func `of a submodule has its git folder, if that names it in turn`() throws {
        let place = try Place()
        try place.repository("home/super/.git/modules/work")
        try place.write("gitdir: ../super/.git/modules/work\n", to: "home/work/.git")
        #expect(try place.folder().fixed.isEmpty)
        try place.write("[core]\n\tworktree = ../../../../work\n", to: "home/super/.git/modules/work/config")
        #expect(try place.folder().fixed.map(\.path) == [Path(place.home + "/super/.git/modules/work").real])
    }

    @Test(arguments: [".git", ".envrc", ".vscode"])
    func `does not follow a link in the place of what is protected`(name: String) throws {
        let place = try Place()
        try place.repository("home/other/.git")
        try place.link("../other/.git", at: "home/work/" + name)
        #expect(try place.folder().fixed.isEmpty && place.folder().protected.isEmpty)
    }

    @Test func `does not follow a link in git's folder, nor a .git file to a folder that shares another's`() throws {
        let place = try Place()
        try place.repository("home/other/.git")
        try place.write("ref: refs/heads/main\n", to: "home/work/own/HEAD")
        try place.write("\(place.home)/other/.git\n", to: "home/work/own/commondir")
        try place.write("\(place.work)/.git\n", to: "home/work/own/gitdir")
        try place.write("gitdir: own\n", to: "home/work/.git")
        #expect(try place.folder().fixed.map(\.path) == [place.folder().path + "/own"])

        let second = try Place()
        try second.write("ref: refs/heads/main\n", to: "home/work/.git/HEAD")
        try second.folders("home/work/.git/objects")
        try second.link("../../other", at: "home/work/.git/hooks")
        #expect(try second.folder().protected.isEmpty)
    }

    @Test func `names in the end what was made or changed that runs outside`() throws {
        let place = try Place()
        try place.repository("home/work/.git")
        try place.write("{}", to: "home/work/.vscode/settings.json")
        let folder = try place.folder()
        #expect(folder.changes().isEmpty)
        try place.write("x", to: "home/work/main.c")
        #expect(folder.changes().isEmpty)
        try place.write("layout", to: "home/work/.envrc")
        try place.write("{ }", to: "home/work/.vscode/settings.json")
        try place.write("exit 1", to: "home/work/.husky/pre-commit")
        try place.write("exit 1", to: "home/work/.git/config.worktree")
        #expect(
            folder.changes() == [".envrc", ".git/config.worktree", ".husky", ".vscode"].map { "\(folder.path)/\($0)" })
    }
}

@Suite struct `The wall of a confined command` {
    private func wall(_ place: Place) throws -> Wall {
        Wall(workFolder: try place.folder(), keptHome: place.path + "/kept", home: place.home, program: "/bin/ringback")
    }

    @Test func `passes on a terminal's variables and those that the user names, and nothing else`() throws {
        let place = try Place()
        let own = [
            "PATH": "/bin", "LC_ALL": "C", "TERM": "xterm", "HOME": "/other", "SSH_AUTH_SOCK": "/a", "GH_TOKEN": "t",
            "LD_PRELOAD": "/x", "GIT_DIR": "/y", "DISPLAY": ":0", "DBUS_SESSION_BUS_ADDRESS": "unix:", "EDITOR": "vi",
        ]
        let inside = try wall(place).environment(of: own, named: ["EDITOR"])
        #expect(inside.map(\.name) == ["EDITOR", "HOME", "LC_ALL", "PATH", "PWD", "TERM", "XDG_RUNTIME_DIR"])
        #expect(inside.first { $0.name == "HOME" }?.value == place.home)
    }

    @Test func `mounts an inner folder after the one that it lies in, and what is protected last`() throws {
        let place = try Place()
        try place.repository("home/work/.git")
        try place.repository("data/.git")
        try place.folders("data/set")
        var wall = try wall(place)
        wall.readable = [try place.folder("data/set")]
        wall.writable = [try place.folder("data")]
        let words = wall.arguments
        let data = try #require(Path(place.path + "/data").real)
        let order = [
            place.home, data, data + "/set", data + "/.git", data + "/.git/hooks",
        ]
        let places = try order.map { path in try #require(words.firstIndex(of: path), "\(path)") }
        #expect(places == places.sorted())
        #expect(words.contains(wall.workFolder.path + "/.git/hooks") && words.contains("--disable-userns"))
        // Mounted by descriptors.
        #expect(!words.contains("/proc/self/fd") && words.count { $0 == "--ro-bind-fd" } == 5)
        wall.isNested = true
        #expect(!wall.arguments.contains("--disable-userns"))
        try place.write("x", to: "data/.envrc")
        #expect(wall.changes() == [data + "/.envrc"])
    }

    @Test func `refuses a kept home in which a link would lead a mount elsewhere`() throws {
        let place = try Place()
        try place.folders("kept")
        let wall = try wall(place)
        try wall.checkHome()
        try place.link("/oldroot/etc", at: "kept/work")
        #expect(throws: Wall.Failure.self) { try wall.checkHome() }
        // The key of the display.
        try place.folders("shown")
        try place.write("", to: "home/.Xauthority")
        try place.link("/oldroot/etc/key", at: "shown/.Xauthority")
        var shown = try self.wall(place)
        shown.keptHome = place.path + "/shown"
        try shown.checkHome()
        shown.addDisplay(of: ["XAUTHORITY": place.home + "/.Xauthority"])
        #expect(throws: Wall.Failure.self) { try shown.checkHome() }
    }

    @Test func `leaves the link to the command's program in the kept home, and removes one to a former version`() throws
    {
        let place = try Place()
        try place.write("", to: "home/versions/2/tool", mode: 0o700)
        try place.link("versions/2/tool", at: "home/tool")
        try place.folders("kept")
        func makesLink() throws -> Bool {
            var wall = try self.wall(place)
            wall.addProgram(at: place.home + "/tool")
            wall.settleLinks()
            return zip(wall.arguments, wall.arguments.dropFirst(2)).contains {
                $0 == "--symlink" && $1 == place.home + "/tool"
            }
        }
        #expect(try makesLink())
        try place.link("/former/tool", at: "kept/tool")
        #expect(try makesLink() && !Path(place.path + "/kept/tool").exists)
        let program = try #require(Path(place.home + "/versions/2/tool").real)
        try place.link(program, at: "kept/tool")
        #expect(try !makesLink() && Path(place.path + "/kept/tool").exists)
    }

    @Test func `refuses a folder that is reached by a link of the work folder, however the link is reached`() throws {
        let place = try Place()
        for name in ["home/work/inner", "home/secret", "home/data"] { try place.folders(name) }
        try place.link("../secret", at: "home/work/link")
        try place.link("../work/link", at: "home/data/chained")
        try place.link("secret", at: "home/direct")
        func refusal(_ path: String, isWritable: Bool = false) throws -> String? {
            var wall = try wall(place)
            let name = path.dropFirst(place.path.utf8.count + 1)
            let folder = try place.folder(String(name))
            if isWritable { wall.writable = [folder] } else { wall.readable = [folder] }
            do throws(Wall.Failure) {
                try wall.checkLinks(on: [path])
                return nil
            } catch { return error.text }
        }
        for name in ["work/link", "work/inner/../link", "data/chained", "work/inner/../../work/link"] {
            #expect(try refusal("\(place.home)/\(name)")?.contains("leads through the link") == true, "\(name)")
            #expect(try refusal("\(place.home)/\(name)", isWritable: true) != nil, "\(name)")
        }
        for name in ["secret", "direct", "work/inner", "work/../data"] {
            #expect(try refusal("\(place.home)/\(name)") == nil, "\(name)")
        }
        // The folder is another one by the time of the check.
        var other = try wall(place)
        other.readable = [try place.folder("home/secret")]
        for name in ["data", "missing"] {
            #expect(throws: Wall.Failure.self) { try other.checkLinks(on: ["\(place.home)/\(name)"]) }
        }
    }

    @Test func `has this program by name, and its socket only if it is given`() throws {
        let place = try Place()
        var wall = try wall(place)
        let words = wall.arguments
        #expect(words.contains(Wall.ringback) && !words.contains("/run/ringback/exposed"))
        wall.environment = wall.environment(
            of: ["PATH": "/bin", "RINGBACK_SOCK": "/outside"], named: ["RINGBACK_SOCK"])
        #expect(wall.environment.first { $0.name == "PATH" }?.value == "/bin:/run/ringback/bin")
        wall.addSocket(in: "/run/user/1/ringback/mount/run")
        #expect(wall.environment.filter { $0.name == "RINGBACK_SOCK" }.map(\.value) == [Wall.socket])
        #expect(wall.arguments.contains("/run/ringback/exposed"))
        // That of an MCP server has a place of its own, and the variable stays.
        wall.addSocket(in: "/run/user/1/ringback/mount/more", server: "linear")
        #expect(wall.environment.filter { $0.name == "RINGBACK_SOCK" }.map(\.value) == [Wall.socket])
        let joined = wall.arguments.joined(separator: " ")
        #expect(joined.contains("--ro-bind /run/user/1/ringback/mount/more /run/ringback/mcp/linear "))
        var other = try self.wall(place)
        other.addSocket(in: "/run/user/1/ringback/mount/more", server: "linear")
        #expect(other.environment.map(\.value) == [Wall.socket(ofServer: "linear")])
    }

    @Test func `has a display only if it is given, by its sockets and variables`() throws {
        let place = try Place()
        try place.write("", to: "home/run/wayland-0")
        var wall = try wall(place)
        let own = ["XDG_RUNTIME_DIR": place.home + "/run", "WAYLAND_DISPLAY": "wayland-0", "XAUTHORITY": "/missing"]
        wall.environment = wall.environment(of: own, named: [])
        #expect(!wall.environment.contains { $0.name == "WAYLAND_DISPLAY" } && wall.displayFiles.isEmpty)
        wall.addDisplay(of: own)
        #expect(wall.displayFiles == [place.home + "/run/wayland-0"])
        #expect(wall.environment.last ?? ("", "") == ("WAYLAND_DISPLAY", place.home + "/run/wayland-0"))
        #expect(wall.arguments.contains(place.home + "/run/wayland-0"))
    }

    @Test func `has the folder of a program's version, never all of ~/.local, and nothing that a project chooses`()
        throws
    {
        let place = try Place()
        for name in [
            ".nvm/versions/v22/bin/node", ".nvm/versions/v22/lib/node_modules/x/cli.js", ".local/bin/tool",
            ".local/share/claude/versions/2/claude", "acme/a/lib/p/run", "work/own", ".config/ringback/bin/tool",
        ] { try place.write("", to: "home/" + name, mode: 0o700) }
        try place.link("../share/claude/versions/2/claude", at: "home/.local/bin/claude")
        try place.link("../acme/a/lib/p/run", at: "home/work/linked")
        try place.link("../../work/linked", at: "home/.local/bin/chained")
        func files(_ name: String) throws -> [String] {
            var wall = try wall(place)
            wall.addProgram(at: name.hasPrefix("/") ? name : "\(place.home)/\(name)")
            return wall.programFiles.map { $0.replacing(place.home + "/", with: "") }
        }
        #expect(try files("/usr/bin/git") == [])
        #expect(try files(".nvm/versions/v22/bin/node") == [".nvm/versions/v22"])
        #expect(try files(".nvm/versions/v22/lib/node_modules/x/cli.js") == [".nvm/versions/v22"])
        #expect(try files(".local/bin/tool") == [".local/bin/tool"])
        #expect(try files(".local/bin/claude") == [".local/share/claude/versions/2/claude", ".local/bin/claude"])
        #expect(try files("acme/a/lib/p/run") == ["acme/a/lib/p/run"])
        #expect(try files(".local/bin/chained") == [])
        #expect(try files("work/own") == [] && files("work/linked") == [] && files(".config/ringback/bin/tool") == [])
    }
}
