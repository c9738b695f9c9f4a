import RingbackBase
import Testing

@testable import SchemeRegistration

@Suite struct `The handler's desktop file` {
    private func scheme(_ text: String = "org.example.app") throws -> URLScheme { try URLScheme(parsing: text) }

    @Test func `SC-03, SC-09, ADV-10: has an absolute program, one unquoted field code and no shell`() throws {
        let file = HandlerFile(
            scheme: try scheme(), program: "/usr/bin/ringback", account: "work", former: "app.desktop")
        #expect(file.name == "ringback-org.example.app.desktop")
        let lines = file.text.split(separator: "\n").map(String.init)
        for line in [
            "[Desktop Entry]", "Type=Application", "Exec=/usr/bin/ringback open %u", "TryExec=/usr/bin/ringback",
            "NoDisplay=true", "Terminal=false", "MimeType=x-scheme-handler/org.example.app;",
        ] {
            #expect(lines.contains(line), "\(line)")
        }
        #expect(HandlerFile(reading: file.text) == file)
        #expect(!file.text.contains("\"%u\"") && !file.text.contains("sh -c"))
    }

    @Test(arguments: [
        ("/usr/bin/ringback", "/usr/bin/ringback", true), ("/opt/a b/ringback", #""/opt/a b/ringback""#, false),
        (#"/o"p/ringback"#, #""/o\\"p/ringback""#, false), ("/o'p/ringback", #""/o'p/ringback""#, false),
        ("/100%/ringback", "/100%%/ringback", false), ("/a$b`c/ringback", #""/a\\$b\\`c/ringback""#, false),
        (#"/a\b/ringback"#, #""/a\\\\b/ringback""#, false), ("/ä/ringback", "/ä/ringback", true),
        ("/a;b&c|d/ringback", #""/a;b&c|d/ringback""#, false), ("/a\nb/ringback", #""/a\nb/ringback""#, false),
    ])
    func `a program's path is written as the specification asks, and read back`(
        path: String, written: String, isPlain: Bool
    ) throws {
        let file = HandlerFile(scheme: try scheme(), program: path)
        #expect(file.text.contains("\nExec=\(written) open %u\n"))
        #expect(HandlerFile(reading: file.text)?.program == path)
        #expect(DesktopFile(reading: file.text).arguments?.dropFirst() == ["open", "%u"])
        #expect(HandlerFile.isPlain(path) == isPlain)
    }

    @Test func `the browser's prompt names the account by its label`() throws {
        var file = HandlerFile(scheme: try scheme(), program: "/usr/bin/ringback", account: "work")
        #expect(file.text.contains("\nName=Ringback (work)\n"))
        file.label = #"Swiss\coin (id.example.org)"#
        #expect(file.text.contains("\nName=Ringback (Swiss\\\\coin (id.example.org))\n"))
        #expect(HandlerFile(reading: file.text)?.account == "work")
    }

    @Test func `is told from the files of others`() throws {
        let other = "[Desktop Entry]\nType=Application\nExec=/usr/bin/app %u\nMimeType=x-scheme-handler/app;\n"
        #expect(HandlerFile(reading: other) == nil)
        #expect(HandlerFile(reading: other + "X-Ringback-Scheme=http\n") == nil)
        #expect(HandlerFile(reading: "X-Ringback-Scheme=app\n" + other) == nil)
        #expect(HandlerFile(reading: other + "X-Ringback-Scheme=app\n") != nil)
    }
}
