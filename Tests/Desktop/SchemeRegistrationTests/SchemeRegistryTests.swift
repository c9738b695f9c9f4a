import Glibc
import RingbackBase
import Synchronization
import Testing

@testable import SchemeRegistration

private final class Home: Sendable {
    let path: String
    let runs = Mutex<[[String]]>([])
    let scheme: URLScheme

    init() throws {
        var template = Array("/tmp/rb-home-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw SchemeRegistry.Failure(reason: "mkdtemp") }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        scheme = try URLScheme(parsing: "org.example.app")
    }

    deinit { Home.remove(path) }

    var registry: SchemeRegistry {
        get throws {
            let places = try #require(DesktopPlaces { $0 == "HOME" ? self.path : nil })
            return SchemeRegistry(places: places) { arguments in
                self.runs.withLock { $0.append(arguments) }
                return 0
            }
        }
    }

    var applications: String { "\(path)/.local/share/applications" }
    var list: String { "\(path)/.config/mimeapps.list" }
    var handler: String { "\(applications)/ringback-org.example.app.desktop" }

    func write(_ text: String, to path: String) throws {
        try FileStore.makeDirectory(FileStore.directory(of: path))
        try FileStore.write(text, to: path)
    }

    private static func remove(_ path: String) {
        if unsafe unlink(path) == 0 { return }
        for name in Directory.names(in: path) { remove("\(path)/\(name)") }
        unsafe rmdir(path)
    }
}

@Suite struct `The registry of schemes` {
    @Test func `registers in an empty home, and leaves it as it was`() throws {
        let home = try Home()
        let registry = try home.registry
        let done = try registry.register(home.scheme, program: "/usr/bin/ringback", account: "work", former: nil)
        #expect(done.path == home.handler && !done.isRepeated)
        #expect(FileStore.text(of: home.handler) == done.file.text)
        #expect(registry.search.handler(of: home.scheme)?.ours == done.file)
        #expect(registry.registered == [done.file])
        #expect(home.runs.withLock { $0 } == [["update-desktop-database", "-q", home.applications]])
        let again = try registry.register(
            home.scheme, program: "/usr/bin/ringback", account: nil, former: "ringback-org.example.app.desktop")
        #expect(again.isRepeated && again.file == done.file)

        #expect(try registry.unregister(home.scheme) == done.file)
        #expect(FileStore.text(of: home.handler) == nil && FileStore.text(of: home.list) == nil)
        #expect(registry.search.handler(of: home.scheme) == nil && registry.registered == [])
        #expect(try registry.unregister(home.scheme) == nil)
    }

    @Test func `who was there before is remembered, and asked again afterwards`() throws {
        let home = try Home()
        try home.write("[Desktop Entry]\nExec=/usr/bin/app %u\n", to: "\(home.applications)/app.desktop")
        let before = "[Default Applications]\nx-scheme-handler/org.example.app=app.desktop;\ntext/html=b.desktop\n"
        try home.write(before, to: home.list)
        let registry = try home.registry
        #expect(registry.search.handler(of: home.scheme)?.name == "app.desktop")
        let done = try registry.register(
            home.scheme, program: "/usr/bin/ringback", account: nil, former: "app.desktop")
        #expect(registry.search.handler(of: home.scheme)?.ours == done.file)
        // The same again, by another program: it is not its own predecessor.
        let moved = try registry.register(
            home.scheme, program: "/opt/ringback", account: nil, former: "ringback-org.example.app.desktop")
        #expect(moved.file.former == "app.desktop" && moved.file.program == "/opt/ringback" && !moved.isRepeated)
        #expect(try registry.unregister(home.scheme) == moved.file)
        #expect(FileStore.text(of: home.list) == before)
        #expect(registry.search.handler(of: home.scheme)?.name == "app.desktop")
    }

    @Test func `a file that is not ours is replaced by force alone, and never removed`() throws {
        let home = try Home()
        let other = "[Desktop Entry]\nExec=/usr/bin/app %u\n"
        try home.write(other, to: home.handler)
        let registry = try home.registry
        #expect(throws: SchemeRegistry.Failure.self) {
            try registry.register(home.scheme, program: "/usr/bin/ringback", account: nil, former: nil)
        }
        #expect(throws: SchemeRegistry.Failure.self) { try registry.unregister(home.scheme) }
        #expect(FileStore.text(of: home.handler) == other && FileStore.text(of: home.list) == nil)
        let forced = try registry.register(
            home.scheme, program: "/usr/bin/ringback", account: nil, former: nil, isForced: true)
        #expect(FileStore.text(of: home.handler) == forced.file.text)
    }

    @Test func `a list that is a link stays one, with its mode`() throws {
        let home = try Home()
        let real = "\(home.path)/dotfiles/mimeapps.list"
        try home.write("[Default Applications]\n", to: real)
        unsafe chmod(real, 0o600)
        try FileStore.makeDirectory("\(home.path)/.config")
        unsafe symlink(real, home.list)
        let registry = try home.registry
        _ = try registry.register(home.scheme, program: "/usr/bin/ringback", account: nil, former: nil)
        #expect(FileStore.isLink(home.list) && FileStore.text(of: real)?.contains("ringback-") == true)
        var status = stat()
        #expect(unsafe stat(real, &status) == 0 && status.st_mode & 0o777 == 0o600)
        _ = try registry.unregister(home.scheme)
        #expect(FileStore.isLink(home.list) && FileStore.text(of: real)?.contains("ringback-") == false)
    }

    @Test(arguments: [[0xE9], Array(repeating: 0x61, count: (1 << 20) + 1)] as [[UInt8]])
    func `a list that cannot be read is left as it is`(content: [UInt8]) throws {
        let home = try Home()
        try FileStore.makeDirectory("\(home.path)/.config")
        let file = unsafe open(home.list, O_WRONLY | O_CREAT, 0o600)
        #expect(unsafe write(file, content, content.count) == content.count)
        close(file)
        let registry = try home.registry
        #expect(throws: SchemeRegistry.Failure.self) {
            try registry.register(home.scheme, program: "/usr/bin/ringback", account: nil, former: nil)
        }
        var status = stat()
        #expect(unsafe stat(home.list, &status) == 0 && status.st_size == content.count)
        #expect(FileStore.text(of: home.list) == nil)
    }

    @Test func `a place that cannot be written is told, and nothing is half done`() throws {
        let home = try Home()
        try home.write("", to: "\(home.path)/.local")
        let registry = try home.registry
        #expect(throws: SchemeRegistry.Failure.self) {
            try registry.register(home.scheme, program: "/usr/bin/ringback", account: nil, former: nil)
        }
        #expect(FileStore.text(of: home.list) == nil)
    }
}
