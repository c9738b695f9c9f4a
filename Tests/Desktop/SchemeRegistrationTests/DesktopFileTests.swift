import RingbackBase
import Testing

@testable import SchemeRegistration

@Suite struct `A desktop file` {
    @Test func `is read from its first group alone`() {
        let file = DesktopFile(
            reading: """
                # Exec=comment
                Exec=before
                [Desktop Entry]
                Name = An app\r
                Exec=/usr/bin/app --open %u
                Exec=/usr/bin/second
                MimeType=text/html;x-scheme-handler/org.example.app;x-scheme-handler/app;
                [Desktop Action new]
                Exec=/usr/bin/other
                """)
        #expect(file["Name"] == "An app")
        #expect(file.arguments == ["/usr/bin/app", "--open", "%u"])
        #expect(file.schemes == ["org.example.app", "app"])
        #expect(file["Comment"] == nil)
    }

    @Test(arguments: [
        (#"/usr/bin/app %u"#, ["/usr/bin/app", "%u"]),
        (#""/a path/app" open  %u"#, ["/a path/app", "open", "%u"]),
        // The value's escapes first, then those inside of quotes: the specification's own example of four backslashes.
        (#""/a\\\\b\\"c\\$d/app" %u"#, [#"/a\b"c$d/app"#, "%u"]),
        (#"/a\sb"#, ["/a", "b"]), (#"app """#, ["app", ""]),
    ])
    func `starts what its Exec says`(exec: String, arguments: [String]) {
        #expect(DesktopFile(reading: "[Desktop Entry]\nExec=\(exec)\n").arguments == arguments)
    }

    @Test(arguments: ["", #""/a b"#, #""a\\"#, "   "])
    func `starts nothing where its Exec is none`(exec: String) {
        #expect(DesktopFile(reading: "[Desktop Entry]\nExec=\(exec)\n").arguments == nil)
        #expect(DesktopFile(reading: "no group\nExec=\(exec)").arguments == nil)
    }
}
